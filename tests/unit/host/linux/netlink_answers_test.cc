// How the answer of the kernel to a netlink request ends.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "host/linux/netlink.h"

namespace braid::netlink_answers_test {
namespace {

using testing::Eq;
using testing::Optional;

/// A message of `type` whose payload is `size` bytes long and begins with `code`.
struct Message {
  Message(uint16_t type, int code, size_t size) {
    header.nlmsg_type = type;
    header.nlmsg_len = static_cast<uint32_t>(MNL_NLMSG_HDRLEN + size);
    std::memcpy(payload, &code, sizeof code);
  }
  nlmsghdr header{};
  uint8_t payload[sizeof(nlmsgerr)]{};
};

std::optional<int> endOf(const Message& message) {
  return acknowledgment(message.header);
}

TEST(NetlinkAnswersTest, AnErrorMessageAcknowledgesOrRefuses) {
  EXPECT_THAT(endOf({NLMSG_ERROR, 0, sizeof(nlmsgerr)}), Optional(0));
  EXPECT_THAT(endOf({NLMSG_ERROR, -EPERM, sizeof(nlmsgerr)}), Optional(EPERM));
}

TEST(NetlinkAnswersTest, ADumpThatTheKernelBrokeOffIsNoWholeOne) {
  EXPECT_THAT(endOf({NLMSG_DONE, 0, sizeof(int)}), Optional(0));
  EXPECT_THAT(endOf({NLMSG_DONE, -EMSGSIZE, sizeof(int)}), Optional(EMSGSIZE));
}

TEST(NetlinkAnswersTest, WhatHoldsNoErrnoIsBad) {
  EXPECT_THAT(endOf({NLMSG_ERROR, 0, sizeof(nlmsgerr) - 1}), Optional(EBADMSG));
  EXPECT_THAT(endOf({NLMSG_ERROR, EPERM, sizeof(nlmsgerr)}), Optional(EBADMSG));
  EXPECT_THAT(endOf({NLMSG_ERROR, -4096, sizeof(nlmsgerr)}), Optional(EBADMSG));
  EXPECT_THAT(endOf({NLMSG_DONE, 0, sizeof(int) - 1}), Optional(EBADMSG));
  EXPECT_THAT(endOf({NLMSG_DONE, 1, sizeof(int)}), Optional(EBADMSG));
}

TEST(NetlinkAnswersTest, OtherMessagesEndNothing) {
  EXPECT_THAT(endOf({NLMSG_MIN_TYPE, 0, sizeof(nlmsgerr)}), Eq(std::nullopt));
}

}  // namespace
}  // namespace braid::netlink_answers_test
