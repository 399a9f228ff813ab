#include "inet/tcp.h"

#include <gtest/gtest.h>

#include "tests/unit/inet/packets.h"

namespace braid::mss_test {
namespace {

using test::Bytes;

constexpr uint8_t kSyn = TcpFields::kSyn;
constexpr uint8_t kSynAck = TcpFields::kSyn | TcpFields::kAck;

Bytes mss(uint16_t value) {
  return {2, 4, static_cast<uint8_t>(value >> 8), static_cast<uint8_t>(value)};
}

TEST(ClampMssTest, LowersToTheMtuInBothFamilies) {
  for (uint8_t flags : {kSyn, kSynAck}) {
    Bytes four = test::tcpV4({.flags = flags, .options = mss(1460)});
    EXPECT_TRUE(clampMss(four, 1400));
    EXPECT_EQ(four, test::tcpV4({.flags = flags, .options = mss(1360)}));

    Bytes six = test::tcpV6({.flags = flags, .options = mss(1440)});
    EXPECT_TRUE(clampMss(six, 1400));
    EXPECT_EQ(six, test::tcpV6({.flags = flags, .options = mss(1340)}));
  }
}

TEST(ClampMssTest, NeverRaises) {
  for (uint16_t value : {0, 536, 1359, 1360}) {
    Bytes b = test::tcpV4({.flags = kSyn, .options = mss(value)});
    const Bytes before = b;
    EXPECT_FALSE(clampMss(b, 1400));
    EXPECT_EQ(b, before);
  }
}

TEST(ClampMssTest, OnlySynsWithTheOption) {
  for (Bytes b :
       {test::tcpV4({.flags = TcpFields::kAck, .options = mss(1460)}),
        test::tcpV4({.flags = kSyn | TcpFields::kRst, .options = mss(1460)}),
        test::tcpV4({.flags = kSyn}),
        test::tcpV4({.flags = kSyn, .options = {1, 1, 3, 3, 7, 0, 0, 0}, .payload = mss(1460)}),
        test::v4({}, test::udp(1, 2, mss(1460)))}) {
    const Bytes before = b;
    EXPECT_FALSE(clampMss(b, 1400));
    EXPECT_EQ(b, before);
  }
}

TEST(ClampMssTest, OtherOptionsAroundAtAnyAlignment) {
  for (size_t nops = 0; nops < 4; ++nops) {
    auto options = [&](uint16_t value) {
      Bytes o(nops, 1);
      test::append(o, mss(value));
      test::append(o, {4, 2});
      o.resize(12, 0);
      return o;
    };
    Bytes b = test::tcpV4({.flags = kSyn, .options = options(0x1234), .payload = {7}});
    EXPECT_TRUE(clampMss(b, 1300));
    EXPECT_EQ(b, test::tcpV4({.flags = kSyn, .options = options(1260), .payload = {7}})) << nops;
  }
}

TEST(ClampMssTest, MalformedOptionsEndTheWalk) {
  const Bytes big = mss(1460);
  for (Bytes options : {
           Bytes{3, 0, 2, 4, 5, 0xb4, 0, 0},     // length 0
           Bytes{3, 1, 2, 4, 5, 0xb4, 0, 0},     // length 1
           Bytes{3, 9, 2, 4, 5, 0xb4, 0, 0},     // beyond the header
           Bytes{0, 1, 2, 4, 5, 0xb4, 0, 0},     // behind the end
           Bytes{2, 3, 5, 1, 2, 6, 5, 0xb4},     // MSS of other lengths
           Bytes{1, 1, 1, 2},                    // cut after the kind
           Bytes{1, 1, 2, 4}, Bytes{1, 2, 4, 5}  // cut in the value
       }) {
    Bytes b = test::tcpV4({.flags = kSyn, .options = options, .payload = {0xff, 0xff}});
    const Bytes before = b;
    EXPECT_FALSE(clampMss(b, 1400));
    EXPECT_EQ(b, before);
  }
}

TEST(ClampMssTest, RepeatedOptionIsClampedEachTime) {
  Bytes twice = mss(1460), expected = mss(1360);
  test::append(twice, mss(9000));
  test::append(expected, mss(1360));
  Bytes b = test::tcpV4({.flags = kSyn, .options = twice});
  EXPECT_TRUE(clampMss(b, 1400));
  EXPECT_EQ(b, test::tcpV4({.flags = kSyn, .options = expected}));
}

TEST(ClampMssTest, MtuThatHoldsNoPayloadChangesNothing) {
  Bytes b = test::tcpV4({.flags = kSyn, .options = mss(1460)});
  for (uint16_t mtu : {0, 39, 40}) EXPECT_FALSE(clampMss(b, mtu));
  EXPECT_TRUE(clampMss(b, 41));
  EXPECT_EQ(load16(&b[42]), 1);
  EXPECT_TRUE(test::transportChecksumValid(b));
}

TEST(ClampMssTest, WrongChecksumStaysWrong) {
  Bytes b = test::tcpV4({.flags = kSyn, .options = mss(1460)});
  b[36] ^= 0x10;
  EXPECT_TRUE(clampMss(b, 1400));
  EXPECT_FALSE(test::transportChecksumValid(b));
}

TEST(ClampMssTest, FragmentsAreLeftAlone) {
  Bytes b = test::v4({.protocol = ip::kTcp, .fragment = ip::kV4MoreFragments},
                     test::tcp({.flags = kSyn, .options = mss(1460)}));
  EXPECT_FALSE(clampMss(b, 1400));
}

}  // namespace
}  // namespace braid::mss_test
