// Makes one allocation of a process fail: LD_PRELOAD=alloc_faults.so BRAID_ALLOC_FAULTS=FILE
// program. FILE holds three 64-bit integers in the machine's byte order, which others may read and
// write while the program runs: the number of the failing allocation, counted from now (0: none
// fails); the number of failed allocations; the number of all allocations.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

// The C library's own functions, by the names that it exports in addition to malloc() and the
// others.
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* old, size_t size);
void* __libc_memalign(size_t alignment, size_t size);
}

namespace {

struct Orders {
  std::atomic<int64_t> countdown, failed, seen;
};
static_assert(std::atomic<int64_t>::is_always_lock_free);

std::atomic<Orders*> orders{nullptr};

__attribute__((constructor)) void readOrders() {
  const char* path = std::getenv("BRAID_ALLOC_FAULTS");
  int fd = path ? ::open(path, O_RDWR | O_CLOEXEC) : -1;
  if (fd < 0) return;
  void* map = ::mmap(nullptr, sizeof(Orders), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::close(fd);
  if (map != MAP_FAILED) orders = static_cast<Orders*>(map);
}

// True when this allocation must fail.
bool isChosen() {
  Orders* o = orders.load(std::memory_order_relaxed);
  if (!o) return false;
  ++o->seen;
  int64_t left = o->countdown.load();
  while (left > 0 && !o->countdown.compare_exchange_weak(left, left - 1)) {
  }
  if (left != 1) return false;
  ++o->failed;
  errno = ENOMEM;
  return true;
}

}  // namespace

extern "C" {

void* malloc(size_t size) {
  return isChosen() ? nullptr : __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  return isChosen() ? nullptr : __libc_calloc(count, size);
}
void* realloc(void* old, size_t size) {
  return isChosen() ? nullptr : __libc_realloc(old, size);
}
void* memalign(size_t alignment, size_t size) {
  return isChosen() ? nullptr : __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  return isChosen() ? nullptr : __libc_memalign(alignment, size);
}
int posix_memalign(void** out, size_t alignment, size_t size) {
  if (isChosen()) return ENOMEM;
  *out = __libc_memalign(alignment, size);
  return *out ? 0 : ENOMEM;
}
}
