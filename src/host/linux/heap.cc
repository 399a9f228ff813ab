#include "host/linux/heap.h"

#include <cstdlib>  // __GLIBC__
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace braid {

namespace {
[[maybe_unused]] constexpr int kLarge = 128 << 10;  // bytes: glibc's own limit before it learns another one
}

void returnLargeBlocks() noexcept {
#ifdef __GLIBC__  // others return large blocks at once (musl, for one)
  ::mallopt(M_MMAP_THRESHOLD, kLarge);
  ::mallopt(M_TRIM_THRESHOLD, kLarge);
#endif
}

}  // namespace braid
