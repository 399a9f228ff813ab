#include "base/memory.h"

#include <sys/mman.h>

#include <new>

namespace braid {

namespace {
constexpr size_t kCacheLine = 64;
constexpr size_t kHugePage = size_t{2} << 20;  // bytes, on x86-64 and, with 4 KB pages, arm64

std::align_val_t alignmentOf(size_t bytes) {
  return std::align_val_t(bytes >= kHugePage ? kHugePage : kCacheLine);
}
}  // namespace

void* allocateHuge(size_t bytes) {
  void* memory = ::operator new(bytes, alignmentOf(bytes));
  // Only a hint: without huge pages everything works, but more slowly. The part after the last
  // whole huge page stays on small pages.
  if (bytes >= kHugePage) (void)madvise(memory, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
  return memory;
}

void releaseHuge(void* memory, size_t bytes) {
  ::operator delete(memory, alignmentOf(bytes));
}

}  // namespace braid
