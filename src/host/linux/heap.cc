#include "host/linux/heap.h"

#include <malloc.h>

namespace braid {

namespace {
constexpr int kLarge = 128 << 10;  // bytes: glibc's own limit before it learns another one
}

void returnLargeBlocks() noexcept {
  ::mallopt(M_MMAP_THRESHOLD, kLarge);
  ::mallopt(M_TRIM_THRESHOLD, kLarge);
}

}  // namespace braid
