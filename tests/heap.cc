#include "tests/heap.h"

#include <malloc.h>

#include <cstddef>
#include <cstdlib>
#include <new>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"  // false alarm on replaced operators
#endif

namespace braid::test {

std::atomic<uint64_t> allocations{0};
std::atomic<int64_t> heldBytes{0};
std::atomic<int64_t> failingAllocation{0};

namespace {

void* take(size_t size, size_t alignment) {
  ++allocations;
  if (failingAllocation > 0 && --failingAllocation == 0) throw std::bad_alloc();
  void* p = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (!p) throw std::bad_alloc();
  heldBytes += static_cast<int64_t>(malloc_usable_size(p));
  return p;
}

void reclaim(void* p) {
  heldBytes -= static_cast<int64_t>(malloc_usable_size(p));
  std::free(p);
}

}  // namespace
}  // namespace braid::test

void* operator new(size_t size) {
  return braid::test::take(size, alignof(std::max_align_t));
}
void* operator new(size_t size, std::align_val_t alignment) {
  return braid::test::take(size, static_cast<size_t>(alignment));
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  try {
    return operator new(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* p) noexcept {
  braid::test::reclaim(p);
}
void operator delete(void* p, size_t) noexcept {
  braid::test::reclaim(p);
}
void operator delete(void* p, std::align_val_t) noexcept {
  braid::test::reclaim(p);
}
void operator delete(void* p, size_t, std::align_val_t) noexcept {
  braid::test::reclaim(p);
}
