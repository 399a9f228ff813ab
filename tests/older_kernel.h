#pragma once

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

namespace braid {

/// A form of a system call that an older kernel does not support: the argument with this number has
/// this value.
struct Unknown {
  unsigned call;
  unsigned argument;
  uint32_t value;
  uint32_t error;
};

/// Runs f in a thread for which the kernel rejects these calls like an older one.
template <typename F>
void onOlderKernel(const std::vector<Unknown>& calls, F&& f) {
  std::vector<sock_filter> code;
  for (const Unknown& u : calls) {
    auto argument =
        static_cast<uint32_t>(offsetof(seccomp_data, args) + u.argument * sizeof(uint64_t));
    code.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, u.call, 0, 3));
    code.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, argument));
    code.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, u.value, 0, 1));
    code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | u.error));
  }
  code.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  std::thread([&] {
    sock_fprog program{static_cast<unsigned short>(code.size()), code.data()};
    ASSERT_EQ(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ASSERT_EQ(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0) << std::strerror(errno);
    f();
  }).join();
}

}  // namespace braid
