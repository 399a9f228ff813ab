#pragma once

#include <string>

namespace braid {

struct Shape {
  virtual ~Shape() = default;
  virtual int corners() const { return 0; }
};

struct Square : Shape {
  int corners() const override { return 4; }
  int side = 1;
};

inline bool hasName(const std::string& name) {
  return name.size() != 0;
}

}  // namespace braid
