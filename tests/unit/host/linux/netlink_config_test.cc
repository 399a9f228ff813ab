#include "host/linux/netlink_config.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "host/system_error.h"
#include "host/unique_fd.h"

namespace braid::netlink_config_test {
namespace {

/// The number that the next descriptor gets.
int nextDescriptor() {
  int fd = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(fd);
  return fd;
}

// What an interface had before is put back in the end: a guess must not stand for it.
TEST(NetlinkConfig, WhatCannotBeReadOfAnInterfaceIsNotGuessed) {
  int fd = nextDescriptor();
  NetlinkConfig config;
  struct stat info {};
  ASSERT_EQ(::fstat(fd, &info), 0);
  ASSERT_TRUE(S_ISSOCK(info.st_mode));
  UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::dup3(null.get(), fd, O_CLOEXEC), fd);  // from now on netlink does not answer
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

}  // namespace
}  // namespace braid::netlink_config_test
