#include "host/linux/memory.h"

#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>  // __GLIBC__
#include <new>

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace braid {

namespace {
[[maybe_unused]] constexpr int kLarge = 128 << 10;  // bytes: glibc's initial mmap threshold
}

void returnLargeBlocks() noexcept {
#ifdef __GLIBC__  // others return large blocks at once (musl, for one)
  ::mallopt(M_MMAP_THRESHOLD, kLarge);
  ::mallopt(M_TRIM_THRESHOLD, kLarge);
#endif
}

namespace {
// Size of the reserve: enough for an orderly end, and small enough that malloc() takes it from its
// heap, where freed memory can serve requests of any size.
constexpr size_t kReserve = 96 << 10;
std::atomic<void*> reserve{nullptr};
}  // namespace

bool holdMemoryReserve() noexcept {
  if (reserve.load(std::memory_order_relaxed)) return true;
  std::set_new_handler([] {
    if (!releaseMemoryReserve()) throw std::bad_alloc();
  });
  void* kept = std::malloc(kReserve);
  std::free(reserve.exchange(kept));  // frees one that another thread allocated meanwhile
  return kept;
}

bool releaseMemoryReserve() noexcept {
  void* kept = reserve.exchange(nullptr);
  std::free(kept);
  return kept;
}

// Only segments that are not writable are unmapped: their contents equal the file's. Relocated
// constants (RELRO) are in writable segments.
void returnProgramPages() noexcept {
  auto each = [](dl_phdr_info* object, size_t, void*) {
    const auto page = static_cast<uintptr_t>(::getpagesize());
    for (int i = 0; i < object->dlpi_phnum; ++i) {
      const ElfW(Phdr)& segment = object->dlpi_phdr[i];
      if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
      uintptr_t begin = (object->dlpi_addr + segment.p_vaddr + page - 1) & ~(page - 1);
      uintptr_t end = (object->dlpi_addr + segment.p_vaddr + segment.p_memsz) & ~(page - 1);
      if (begin < end) ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
    }
    return 0;
  };
  ::dl_iterate_phdr(each, nullptr);
}

}  // namespace braid
