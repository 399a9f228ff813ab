#include "host/linux/memory_reserve.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace braid {

namespace {
// As much as an orderly end takes, and so little that malloc() has it on its heap: what is freed there serves any size.
constexpr size_t kReserve = 96 << 10;
std::atomic<void*> reserve{nullptr};
}  // namespace

bool holdMemoryReserve() noexcept {
  if (reserve.load(std::memory_order_relaxed)) return true;
  std::set_new_handler([] {
    if (!releaseMemoryReserve()) throw std::bad_alloc();
  });
  void* kept = std::malloc(kReserve);
  std::free(reserve.exchange(kept));  // that of another thread
  return kept;
}

bool releaseMemoryReserve() noexcept {
  void* kept = reserve.exchange(nullptr);
  std::free(kept);
  return kept;
}

}  // namespace braid
