#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace braid {

/// Equal objects that are made on demand, `kSlab` at a time, and used again: once warm, neither take() nor give()
/// allocates. Objects keep their place in memory, and die with the stock.
template <typename T, size_t kSlab = 64>
class Stock {
 public:
  Stock() = default;
  Stock(const Stock&) = delete;
  Stock& operator=(const Stock&) = delete;

  /// An object as it was given back, or T{}.
  T* take() {
    if (free_.empty()) grow();
    T* item = free_.back();
    free_.pop_back();
    return item;
  }
  /// Gives back one of this stock.
  void give(T* item) { free_.push_back(item); }

  /// Frees the memory, if no object is in use.
  void shrink() {
    if (inUse() > 0) return;
    slabs_.clear();
    slabs_.shrink_to_fit();
    free_.clear();
    free_.shrink_to_fit();
  }

  /// Bytes of all objects there are.
  size_t footprint() const { return slabs_.size() * kSlab * sizeof(T); }
  /// Objects taken and not given back.
  size_t inUse() const { return slabs_.size() * kSlab - free_.size(); }

 private:
  void grow() {
    slabs_.push_back(std::make_unique<T[]>(kSlab));
    free_.reserve(slabs_.size() * kSlab);
    for (size_t i = kSlab; i-- > 0;) free_.push_back(&slabs_.back()[i]);
  }

  std::vector<std::unique_ptr<T[]>> slabs_;
  std::vector<T*> free_;
};

}  // namespace braid
