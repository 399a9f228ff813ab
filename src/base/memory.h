#pragma once

// How memory for many records of one type is allocated. Each has one owner and is single-threaded.
//
//   HugeArray    a table of fixed size with random access, on huge pages
//   ObjectPool   reusable objects that are allocated in slabs. shrink() frees them all at once,
//                while none is in use
//   BoundedPool  reusable objects that are allocated one by one; only some are kept for reuse
//
// None of them has a bound of its own. How much sessions may hold together is counted by a memory
// quota (memory_quota.h).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace braid {

/// Allocates `bytes` > 0, uninitialized and aligned to a cache line. Blocks of 2 MB and more are
/// aligned to a huge page, and the kernel is asked to use huge pages, which avoids a TLB miss at
/// nearly every access. Throws std::bad_alloc. HugeArray is its only caller.
void* allocateHuge(size_t bytes);
/// Frees a block from allocateHuge(); `bytes` must be the same.
void releaseHuge(void* memory, size_t bytes);

/// The state of a HugeArray's elements after its construction.
enum class ArrayInit : uint8_t {
  kValue,  ///< value-initialized
  /// Uninitialized: each element must be assigned before it is read, and T must allow to assign an
  /// object that was not constructed. The kernel provides a page of memory when an element in it is
  /// first assigned.
  kNone,
};

/// An array of fixed size in memory from allocateHuge(). Indexes are not checked.
template <class T>
class HugeArray {
  static_assert(std::is_trivially_destructible_v<T>);

 public:
  explicit HugeArray(size_t size, ArrayInit init = ArrayInit::kValue)
      : size_(size), memory_(allocateHuge(bytes(size)), Release{bytes(size)}) {
    if (init == ArrayInit::kValue) std::uninitialized_value_construct_n(data(), size);
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

/// Reusable objects, allocated in slabs of kSlab when none is free. Objects never move in memory.
/// All of them are destroyed with the pool, even those in use.
template <typename T, size_t kSlab = 64>
class ObjectPool {
 public:
  ObjectPool() = default;
  ObjectPool(const ObjectPool&) = delete;
  ObjectPool& operator=(const ObjectPool&) = delete;

  /// A free object; never nullptr. It is T{} the first time, and afterwards in the state in which
  /// give() got it.
  T* take() {
    if (free_.empty()) grow();
    T* item = free_.back();
    free_.pop_back();
    return item;
  }
  /// Returns an object that take() of this pool has handed out. Never allocates.
  void give(T* item) { free_.push_back(item); }

  /// Frees all memory if no object is in use; otherwise does nothing.
  void shrink() {
    if (inUse() > 0) return;
    slabs_.clear();
    slabs_.shrink_to_fit();
    free_.clear();
    free_.shrink_to_fit();
  }

  /// Memory of all objects, in use or not, in bytes.
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

/// Reusable objects of which at most kMaxFree are kept while not in use; the memory of others is
/// freed at once. So memory that was needed once, perhaps for a hostile peer, is not kept forever.
/// An object that is still in use when the pool is destroyed leaks.
template <typename T, size_t kMaxFree>
class BoundedPool {
 public:
  /// A free object; never nullptr. It is T{} if it is new, or else in the state in which give() got
  /// it.
  T* take() {
    ++inUse_;
    if (free_.empty()) return std::make_unique<T>().release();
    T* item = free_.back().release();
    free_.pop_back();
    return item;
  }
  /// Returns an object that take() has handed out.
  void give(T* item) {
    --inUse_;
    std::unique_ptr<T> owned(item);
    if (free_.size() < kMaxFree) free_.push_back(std::move(owned));
  }
  /// Frees the objects that are not in use.
  void shrink() { free_.clear(); }
  /// Objects taken and not given back.
  size_t inUse() const { return inUse_; }

 private:
  std::vector<std::unique_ptr<T>> free_;
  size_t inUse_ = 0;
};

}  // namespace braid
