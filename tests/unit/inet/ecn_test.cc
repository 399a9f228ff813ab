#include "inet/ip.h"

#include <gtest/gtest.h>

#include "tests/unit/inet/packets.h"

namespace braid::ecn_test {
namespace {

using test::Bytes;

constexpr Ecn kAll[] = {Ecn::kNotEct, Ecn::kEct1, Ecn::kEct0, Ecn::kCe};
constexpr uint8_t kDscp = 46 << 2;

/// A packet in IPv4 and in IPv6, with this codepoint and a DSCP.
std::vector<Bytes> packets(Ecn ecn) {
  auto trafficClass = static_cast<uint8_t>(kDscp | static_cast<uint8_t>(ecn));
  return {test::tcpV4({}, trafficClass), test::tcpV6({}, trafficClass)};
}

TEST(EcnTest, Reads) {
  for (Ecn ecn : kAll) {
    for (const Bytes& b : packets(ecn)) EXPECT_EQ(readEcn(b), ecn);
  }
}

TEST(EcnTest, SetsOnlyTheTwoBitsAndTheChecksum) {
  for (Ecn from : kAll) {
    for (Ecn to : kAll) {
      std::vector<Bytes> before = packets(from), expected = packets(to);
      for (size_t i = 0; i < before.size(); ++i) {
        EXPECT_TRUE(setEcn(before[i], to));
        EXPECT_EQ(before[i], expected[i]);
      }
    }
  }
}

TEST(EcnTest, MarksCapablePacketsOnly) {
  for (Ecn ecn : kAll) {
    for (Bytes& b : packets(ecn)) {
      const Bytes before = b;
      EXPECT_EQ(markCe(b), ecn != Ecn::kNotEct);
      EXPECT_EQ(readEcn(b), ecn == Ecn::kNotEct ? Ecn::kNotEct : Ecn::kCe);
      EXPECT_EQ(b == before, ecn == Ecn::kNotEct || ecn == Ecn::kCe);
      EXPECT_EQ(parseInnerPacket(b)->dscp, 46);
    }
  }
}

TEST(EcnTest, WrongChecksumStaysWrong) {
  Bytes b = packets(Ecn::kEct0)[0];
  b[10] ^= 0x55;
  EXPECT_TRUE(markCe(b));
  EXPECT_FALSE(test::v4ChecksumValid(b));
}

TEST(EcnTest, WhatIsNoIpPacketIsLeftAlone) {
  Bytes v4 = packets(Ecn::kEct0)[0], v6 = packets(Ecn::kEct0)[1];
  Bytes other = v4;
  other[0] = 0x55;
  for (Bytes b :
       {Bytes{}, Bytes(v4.begin(), v4.begin() + 19), Bytes(v6.begin(), v6.begin() + 39), other}) {
    const Bytes before = b;
    EXPECT_EQ(readEcn(b), std::nullopt);
    EXPECT_FALSE(setEcn(b, Ecn::kCe));
    EXPECT_FALSE(markCe(b));
    EXPECT_EQ(b, before);
  }
}

}  // namespace
}  // namespace braid::ecn_test
