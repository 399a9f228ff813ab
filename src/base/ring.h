#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace braid {

/// A queue over one block of memory that doubles when full and never shrinks: no allocation per element once
/// warm. T must be movable and default-constructible; a removed element is reset to T{}.
template <class T>
class Ring {
 public:
  bool empty() const { return size_ == 0; }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return slots_[(head_ + i) & (slots_.size() - 1)]; }
  const T& operator[](size_t i) const { return slots_[(head_ + i) & (slots_.size() - 1)]; }
  T& front() { return (*this)[0]; }
  const T& front() const { return (*this)[0]; }
  T& back() { return (*this)[size_ - 1]; }

  void pushBack(T&& value) {
    if (size_ == slots_.size()) grow();
    ++size_;
    back() = std::move(value);
  }
  void popFront() {
    front() = T{};
    head_ = (head_ + 1) & (slots_.size() - 1);
    --size_;
  }
  void popBack() {
    back() = T{};
    --size_;
  }

 private:
  void grow() {
    std::vector<T> more(slots_.empty() ? 16 : slots_.size() * 2);
    for (size_t i = 0; i < size_; ++i) more[i] = std::move((*this)[i]);
    slots_ = std::move(more);
    head_ = 0;
  }
  std::vector<T> slots_;  // a power of two, or none
  size_t head_ = 0;
  size_t size_ = 0;
};

}  // namespace braid
