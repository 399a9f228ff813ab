#include "host/linux/netlink_config.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/if.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "host/system.h"

namespace braid::netlink_config_test {
namespace {

/// The number of the next file descriptor.
int nextDescriptor() {
  int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(fd);
  return fd;
}

/// From now on, messages written to the netlink socket with this descriptor get no answer.
void silence(int fd) {
  struct stat info {};
  ASSERT_EQ(::fstat(fd, &info), 0);
  ASSERT_TRUE(S_ISSOCK(info.st_mode));
  UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::dup3(null.get(), fd, O_CLOEXEC), fd);
}

uint32_t mtuOfLo() {
  UniqueFd any(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request{};
  std::string_view("lo").copy(request.ifr_name, IFNAMSIZ - 1);
  EXPECT_EQ(::ioctl(any.get(), SIOCGIFMTU, &request), 0);
  return static_cast<uint32_t>(request.ifr_mtu);
}

// The old value of an interface's setting is restored at the end, so it must be known, not guessed.
TEST(NetlinkConfig, WhatCannotBeReadOfAnInterfaceIsNotGuessed) {
  int fd = nextDescriptor();
  NetlinkConfig config;
  ASSERT_NO_FATAL_FAILURE(silence(fd));
  auto failure = [&](auto&& change) {
    try {
      change();
    } catch (const SystemError& e) {
      EXPECT_EQ(e.code(), ENOTSOCK);
      return std::string(e.what());
    }
    return std::string("none");
  };
  const std::string unread = "cannot look at interface 'lo': ";
  EXPECT_THAT(failure([&] { config.setMtu("lo", 1400); }), testing::StartsWith(unread));
  EXPECT_THAT(failure([&] { config.setLinkUp("lo"); }), testing::StartsWith(unread));
  EXPECT_THAT(failure([&] { config.setMaster("lo", "lo"); }), testing::StartsWith(unread));
  EXPECT_THAT(config.done(), testing::IsEmpty());
}

// UBSan opens a pipe when it first checks the type of an object, and then remembers the type. So
// the check is triggered before the descriptors run out.
void showAnError() {
  try {
    throw SystemError(ENODEV, "shown");
  } catch (const std::exception& e) {
    EXPECT_THAT(e.what(), testing::StartsWith("shown"));
  }
}

// if_nametoindex() opens a socket. When that fails, the interface seems not to exist.
TEST(NetlinkConfig, WhatIsNotTakenBackIsToldAlsoWithoutDescriptors) {
  uint32_t mtu = mtuOfLo();
  showAnError();
  int fd = nextDescriptor();
  NetlinkConfig config;
  config.setMtu("lo", mtu);  // changes nothing, and is remembered
  ASSERT_NO_FATAL_FAILURE(silence(fd));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none{0, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  std::vector<std::string> failures = config.undo();
  EXPECT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_THAT(failures,
              testing::ElementsAre(testing::StartsWith("cannot look at interface 'lo': ")));
}

}  // namespace
}  // namespace braid::netlink_config_test
