#include "host/linux/system_call_filter.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/if_tun.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "host/system.h"

namespace braid {

// The list of system calls is that of 64-bit architectures with the kernel's generic numbers, and
// of x86-64, which has older calls beside them.
#if defined(__x86_64__)
#define BRAID_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__) && defined(__AARCH64EL__)
#define BRAID_ARCHITECTURE AUDIT_ARCH_AARCH64
#elif defined(__riscv) && __riscv_xlen == 64
#define BRAID_ARCHITECTURE AUDIT_ARCH_RISCV64
#endif

#ifndef BRAID_ARCHITECTURE

std::string restrictSystemCalls() {
  return "there is no list of system calls for this architecture";
}

#else

namespace {

// Calls that carry packets come first: a kernel before 5.11 compares one after the other.
constexpr int kAllowed[] = {
    // packets, timers, other sockets
    SYS_sendmmsg,
    SYS_recvmmsg,
    SYS_read,
    SYS_write,
    SYS_epoll_pwait,
    SYS_writev,
    SYS_readv,
    SYS_sendmsg,
    SYS_recvmsg,
    SYS_sendto,
    SYS_recvfrom,
    SYS_timerfd_settime,
    SYS_epoll_ctl,
    SYS_futex,
    SYS_clock_gettime,
    SYS_splice,
    SYS_accept4,
    SYS_accept,
    SYS_bind,
    SYS_connect,
    SYS_listen,
    SYS_shutdown,
    SYS_getsockname,
    SYS_getpeername,
    SYS_getsockopt,
    SYS_setsockopt,
    SYS_ppoll,
    SYS_pselect6,
    SYS_epoll_create1,
    SYS_eventfd2,
    SYS_timerfd_create,
    SYS_timerfd_gettime,
    SYS_signalfd4,
    SYS_pipe2,
    SYS_inotify_init1,
    SYS_inotify_add_watch,
    SYS_inotify_rm_watch,
    SYS_clock_getres,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_gettimeofday,
    // files
    SYS_openat,
    SYS_close,
    SYS_fstat,
    SYS_newfstatat,
    SYS_statfs,
    SYS_fstatfs,
    SYS_faccessat,
    SYS_lseek,
    SYS_pread64,
    SYS_pwrite64,
    SYS_preadv,
    SYS_pwritev,
    SYS_fsync,
    SYS_fdatasync,
    SYS_ftruncate,
    SYS_renameat2,
    SYS_unlinkat,
    SYS_linkat,
    SYS_mkdirat,
    SYS_readlinkat,
    SYS_getdents64,
    SYS_fcntl,
    SYS_flock,
    SYS_dup,
    SYS_dup3,
    SYS_fchmod,
    SYS_fchmodat,
    SYS_fchown,
    SYS_fchownat,
    SYS_umask,
    SYS_getcwd,
    SYS_fgetxattr,
    SYS_fadvise64,
    // memory
    SYS_brk,
    SYS_munmap,
    SYS_mremap,
    SYS_madvise,
    SYS_mincore,
    SYS_mlock,
    SYS_munlock,
    SYS_membarrier,
    // this process and its threads
    SYS_getpid,
    SYS_gettid,
    SYS_getppid,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_getresuid,
    SYS_getresgid,
    SYS_getgroups,
    SYS_getrusage,
    SYS_getrandom,
    SYS_sysinfo,
    SYS_uname,
    SYS_getcpu,
    SYS_prctl,
    SYS_capget,
    SYS_capset,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_exit,
    SYS_exit_group,
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_rt_sigpending,
    SYS_sigaltstack,
    SYS_restart_syscall,
    SYS_set_robust_list,
    SYS_set_tid_address,
#ifdef SYS_statx
    SYS_statx,
#endif
#ifdef SYS_faccessat2
    SYS_faccessat2,
#endif
#ifdef SYS_fchmodat2
    SYS_fchmodat2,
#endif
#ifdef SYS_epoll_pwait2
    SYS_epoll_pwait2,
#endif
#ifdef SYS_mlock2
    SYS_mlock2,
#endif
#ifdef SYS_rseq
    SYS_rseq,
#endif
#ifdef SYS_renameat  // RISC-V has renameat2 alone
    SYS_renameat,
#endif
#ifdef __x86_64__
    SYS_epoll_wait,
    SYS_poll,
    SYS_select,
    SYS_epoll_create,
    SYS_eventfd,
    SYS_pipe,
    SYS_time,
    SYS_open,
    SYS_stat,
    SYS_lstat,
    SYS_access,
    SYS_rename,
    SYS_unlink,
    SYS_link,
    SYS_mkdir,
    SYS_rmdir,
    SYS_readlink,
    SYS_chmod,
    SYS_chown,
    SYS_lchown,
    SYS_dup2,
    SYS_arch_prctl,
#endif
};

class Filter {
 public:
  Filter() {
    load(offsetof(seccomp_data, arch));
    add(BPF_JMP | BPF_JEQ | BPF_K, BRAID_ARCHITECTURE, 1, 0);
    add(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    load(offsetof(seccomp_data, nr));
  }

  void allow(int call) {
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1);
    add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  }
  /// Allows a call if the bits `mask` of an argument have one of these values.
  void allowIf(int call, unsigned argument, uint32_t mask, std::initializer_list<uint32_t> values) {
    // The parts after the call's number: load, mask, two for each value, refusal.
    const auto rest = static_cast<uint8_t>(2 + 2 * values.size() + 1);
    add(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, rest);
    load(offsetof(seccomp_data, args) + argument * sizeof(uint64_t));  // its lower half
    add(BPF_ALU | BPF_AND | BPF_K, mask);
    for (uint32_t value : values) {
      add(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
      add(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
  }
  /// Ends it: what was not allowed is refused.
  sock_fprog finish() {
    add(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
    return {static_cast<unsigned short>(code_.size()), code_.data()};
  }

 private:
  void add(unsigned code, uint32_t k, uint8_t ifTrue = 0, uint8_t ifFalse = 0) {
    code_.push_back({static_cast<uint16_t>(code), ifTrue, ifFalse, k});
  }
  void load(size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)); }

  std::vector<sock_filter> code_;
};

}  // namespace

std::string restrictSystemCalls() {
  uint32_t needed = SECCOMP_RET_KILL_PROCESS;
  if (::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0ul, &needed) != 0) {
    return errno == EPERM ? "a filter of system calls around this process refuses another one"
                          : "this kernel filters no system calls (seccomp)";
  }
  constexpr uint32_t kAll = ~uint32_t{0}, kWriteAndExecute = PROT_WRITE | PROT_EXEC;
  Filter filter;
  for (int call : kAllowed) filter.allow(call);
  filter.allowIf(SYS_mmap, 2, kWriteAndExecute, {0, PROT_WRITE, PROT_EXEC});
  filter.allowIf(SYS_mprotect, 2, PROT_EXEC, {0});
  filter.allowIf(SYS_socket, 0, kAll, {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK});
  filter.allowIf(SYS_clone, 0, CLONE_THREAD, {CLONE_THREAD});
  filter.allowIf(SYS_prlimit64, 0, kAll, {0});
  filter.allowIf(SYS_tgkill, 0, kAll, {static_cast<uint32_t>(::getpid())});  // abort()
  filter.allowIf(SYS_ioctl, 1, kAll,
                 {TUNSETOFFLOAD, SIOCGIFINDEX, SIOCGIFNAME, FIONREAD, FIONBIO, TCGETS});
  sock_fprog program = filter.finish();

  // SPEC_ALLOW: kernels before 5.16 would otherwise switch speculation off, at some cost. It
  // protects programs that run foreign code.
  constexpr unsigned long kFlags = SECCOMP_FILTER_FLAG_TSYNC | SECCOMP_FILTER_FLAG_SPEC_ALLOW;
  const long result = ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, kFlags, &program);
  if (result == 0) return {};
  int error = result > 0 ? EBUSY : errno;  // a thread of this number has another filter
  throw SystemError(error, std::string("cannot restrict the daemon to its system calls: ") +
                               std::strerror(error) + "; try again");
}

#endif

}  // namespace braid
