#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "host/system.h"

namespace braid {

/// A test in its own network namespace, which is removed with the test. A second namespace,
/// `other()`, represents a far host. Between tests the process is in its original namespace.
class NetNamespaceTest : public testing::Test {
 protected:
  void SetUp() override {
    home_ = open();
    ASSERT_EQ(::unshare(CLONE_NEWNET), 0)
        << "these tests need root (CAP_SYS_ADMIN, CAP_NET_ADMIN): " << std::strerror(errno);
    other_ = open();
    ASSERT_EQ(::unshare(CLONE_NEWNET), 0);
    own_ = open();
    ip("link set lo up");
  }
  void TearDown() override { ::setns(home_.get(), CLONE_NEWNET); }

  /// Runs f in the other namespace. Sockets made there stay in it.
  template <typename F>
  auto inOther(F&& f) {
    ::setns(other_.get(), CLONE_NEWNET);
    struct Back {
      int fd;
      ~Back() { ::setns(fd, CLONE_NEWNET); }
    } back{own_.get()};
    return f();
  }

  /// Output of a shell command; fails the test when the command fails.
  static std::string shell(const std::string& command) {
    std::string out;
    FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
    if (!pipe) return out;
    std::array<char, 4096> buffer;
    while (size_t n = ::fread(buffer.data(), 1, buffer.size(), pipe)) out.append(buffer.data(), n);
    EXPECT_EQ(::pclose(pipe), 0) << command << ": " << out;
    return out;
  }
  static std::string ip(const std::string& arguments) { return shell("ip " + arguments); }

  /// `near` here, at 192.0.2.1 and 2001:db8::1; `far` in the other namespace, at .2 and ::2.
  void joinNamespaces() {
    ip("link add near type veth peer name far netns /proc/self/fd/" + std::to_string(other_.get()));
    auto address = [](const std::string& device, const std::string& host) {
      ip("link set " + device + " up");
      ip("addr add 192.0.2." + host + "/24 dev " + device);
      ip("addr add 2001:db8::" + host + "/64 dev " + device + " nodad");
    };
    address("near", "1");
    inOther([&] {
      ip("link set lo up");
      address("far", "2");
    });
  }

 private:
  static UniqueFd open() { return UniqueFd(::open("/proc/thread-self/ns/net", O_RDONLY)); }
  UniqueFd home_, own_, other_;
};

}  // namespace braid
