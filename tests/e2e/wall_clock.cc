// Preloaded into a program, this shows it another wall clock than the host's, which other programs
// need as it is. The file $BRAID_WALL_CLOCK holds by how many seconds it is ahead (8 bytes, a
// signed number of the host's byte order), and may change while the program runs. All other clocks
// are the host's.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace {

const volatile int64_t* mapped = nullptr;

// Before the program may have confined itself to other files.
__attribute__((constructor)) void mapFile() {
  const char* path = std::getenv("BRAID_WALL_CLOCK");
  if (!path) return;
  int file = ::open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) std::abort();
  void* at = ::mmap(nullptr, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) std::abort();
  ::close(file);
  mapped = static_cast<const volatile int64_t*>(at);
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* out) noexcept {
  int status = static_cast<int>(::syscall(SYS_clock_gettime, clock, out));
  bool isWall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
  if (status == 0 && isWall && mapped) out->tv_sec += *mapped;
  return status;
}

int gettimeofday(timeval* out, void*) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  *out = {now.tv_sec, now.tv_nsec / 1000};
  return 0;
}

time_t time(time_t* out) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}
}
