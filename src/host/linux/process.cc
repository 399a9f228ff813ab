#include "host/linux/process.h"

#include <fcntl.h>
#include <grp.h>
#include <link.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>  // __GLIBC__
#include <cstring>
#include <new>
#include <vector>

#include "host/system.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif
#ifdef BRAID_SYSTEMD
#include <systemd/sd-daemon.h>
#endif

namespace braid::notify {

namespace {

#ifdef BRAID_SYSTEMD
// Retries on failure, because the service manager may end the daemon if it misses a message (READY,
// WATCHDOG), and the cause of the failure (no memory, no free descriptor, a full queue) may be
// temporary.
void tell(const std::string& words) {
  for (int tries = 0; tries < 3 && sd_notify(0, words.c_str()) < 0; ++tries) {
  }
}

uint64_t watchdogMicroseconds() {
  uint64_t us = 0;
  return sd_watchdog_enabled(0, &us) > 0 ? us : 0;
}
#else
void tell(const std::string&) {}

uint64_t watchdogMicroseconds() {
  return 0;
}
#endif

}  // namespace

void ready(const std::string& line) {
  tell("READY=1\nSTATUS=" + line);
}

void reloading() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  auto us = static_cast<unsigned long long>(t.tv_sec) * 1'000'000 +
            static_cast<unsigned long long>(t.tv_nsec) / 1000;
  tell("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(us));
}

void stopping() {
  tell("STOPPING=1");
}
void status(const std::string& line) {
  tell("STATUS=" + line);
}
void watchdog() {
  tell("WATCHDOG=1");
}

Duration watchdogInterval() {
  return std::chrono::microseconds(watchdogMicroseconds() / 2);
}

}  // namespace braid::notify

namespace braid {

namespace {

constexpr uint32_t kKept = 1u << CAP_NET_ADMIN | 1u << CAP_NET_RAW | 1u << CAP_NET_BIND_SERVICE;

// Without CAP_SETPCAP the set stays as whoever started this process has limited it.
void limitBoundingSet() {
  for (unsigned long capability = 0; ::prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0;
       ++capability) {
    if (capability >= 32 || (kKept & 1u << capability) == 0)
      ::prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
  }
}

// Changes user, group and supplementary groups. Returns an errno; 0: done.
int changeUser(const std::string& name) {
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> room(1 << 16);
  ::getpwnam_r(name.c_str(), &entry, room.data(), room.size(), &found);
  if (!found) return ENOENT;
  bool done = ::initgroups(name.c_str(), entry.pw_gid) == 0 &&
              ::setresgid(entry.pw_gid, entry.pw_gid, entry.pw_gid) == 0 &&
              ::setresuid(entry.pw_uid, entry.pw_uid, entry.pw_uid) == 0;
  return done ? 0 : errno;
}

// In the child process of obstacleAs(). Returns the number of the first path that the user cannot
// use, kAll: all can be used, kNoUser: it cannot become the user.
constexpr size_t kAll = SIZE_MAX, kNoUser = SIZE_MAX - 1;
size_t firstObstacle(const std::string& user, const std::vector<NeededAccess>& needed) {
  if (changeUser(user) != 0) return kNoUser;
  for (size_t i = 0; i < needed.size(); ++i) {
    if (::access(needed[i].path.c_str(), needed[i].mode) != 0 && errno != ENOENT) return i;
  }
  return kAll;
}

}  // namespace

void becomeUser(const std::string& name) {
  limitBoundingSet();  // while it is allowed
  // Without KEEPCAPS, changing the user would clear the permitted capabilities.
  int error = ::prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) == 0 ? changeUser(name) : errno;
  if (error == ENOENT)
    throw SystemError(ENOENT,
                      "there is no user '" + name + "'; create it, or name another one by --user");
  if (error != 0) {
    throw SystemError(error, "cannot become user '" + name + "': " + std::strerror(error) +
                                 "; start braidd as root, or without --user");
  }
  dropPrivileges();
}

std::string obstacleAs(const std::string& user, const std::vector<NeededAccess>& needed) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    throw SystemError(errno, std::string("cannot make a pipe: ") + std::strerror(errno));
  UniqueFd reading(ends[0]), writing(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    const size_t answer = firstObstacle(user, needed);
    ::_exit(::write(writing.get(), &answer, sizeof answer) == sizeof answer ? 0 : 1);
  }
  int status = -1;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  size_t found = kNoUser;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 ||
      ::read(reading.get(), &found, sizeof found) != sizeof found)
    found = kNoUser;
  if (found == kAll) return {};
  if (found >= needed.size()) return "this process may not become that user";
  return "that user cannot " + std::string(needed[found].mode & W_OK ? "write" : "read") + " " +
         needed[found].path;
}

void dropPrivileges() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[2]{};  // 64 capabilities in two words; the kept ones are in the first
  if (::syscall(SYS_capget, &header, sets) < 0) {
    throw SystemError(errno, std::string("cannot read own capabilities: ") + std::strerror(errno));
  }
  limitBoundingSet();
  sets[0] = {sets[0].permitted & kKept, sets[0].permitted & kKept, 0};
  sets[1] = {};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
      ::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 ||
      ::syscall(SYS_capset, &header, sets) < 0) {
    throw SystemError(errno, std::string("cannot drop capabilities: ") + std::strerror(errno));
  }
}

void allowDumps(bool on) {
  ::prctl(PR_SET_DUMPABLE, on ? 1 : 0, 0, 0, 0);
}

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
