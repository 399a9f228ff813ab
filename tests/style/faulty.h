#pragma once

namespace braid {

struct Shape {
  virtual ~Shape() = default;
  virtual int corners() const { return 0; }
};

struct Square : Shape {
  int corners() const override { return 4; }
  int side = 1;
};

inline Shape sliced(const Square& square) {
  return square;
}

}  // namespace braid
