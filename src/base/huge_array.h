#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

namespace braid {

/// Memory for large tables that are entered anywhere: of `bytes` > 0, on cache lines. From 2 MB on it begins
/// on a huge page and the kernel is asked for such pages, which saves a miss of the address cache at nearly
/// every entry. Throws std::bad_alloc.
void* allocateHuge(size_t bytes);
void releaseHuge(void* memory, size_t bytes);

/// Whether the records of a HugeArray are there from the start.
enum class Records : uint8_t {
  kMade,    ///< value-initialized
  kUnmade,  ///< each is assigned before it is read; memory is taken as they are
};

/// A fixed number of records in memory of allocateHuge().
template <class T>
class HugeArray {
  static_assert(std::is_trivially_destructible_v<T>);

 public:
  explicit HugeArray(size_t size, Records records = Records::kMade)
      : size_(size), memory_(allocateHuge(bytes(size)), Release{bytes(size)}) {
    if (records == Records::kMade) std::uninitialized_value_construct_n(data(), size);
  }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  T* data() { return static_cast<T*>(memory_.get()); }
  const T* data() const { return static_cast<const T*>(memory_.get()); }

 private:
  struct Release {
    size_t bytes;
    void operator()(void* memory) const { releaseHuge(memory, bytes); }
  };
  static size_t bytes(size_t size) { return (size > 0 ? size : 1) * sizeof(T); }

  size_t size_;
  std::unique_ptr<void, Release> memory_;
};

}  // namespace braid
