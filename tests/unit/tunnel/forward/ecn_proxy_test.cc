#include "tunnel/forward/ecn_proxy.h"

#include <gtest/gtest.h>

#include "tests/unit/inet/packets.h"

namespace braid::ecn_proxy_test {
namespace {

using test::Bytes;
using F = TcpFields;

constexpr uint8_t kCe = static_cast<uint8_t>(Ecn::kCe);
constexpr uint8_t kEct0 = static_cast<uint8_t>(Ecn::kEct0);

/// A local client 10.0.0.1 and a server 10.0.0.2, in IPv4 and IPv6.
struct EcnProxyTest : testing::TestWithParam<bool> {
  EcnProxy proxy{1, 2};
  Time now = Time{} + 1s;

  Bytes make(test::Tcp h, uint8_t ecn) {
    return GetParam() ? test::tcpV6(h, ecn) : test::tcpV4(h, ecn);
  }
  /// The packet with source and destination swapped.
  Bytes turned(Bytes packet) {
    size_t at = GetParam() ? 8 : 12, n = GetParam() ? 16 : 4, l4 = GetParam() ? 40 : 20;
    std::swap_ranges(packet.begin() + at, packet.begin() + at + n, packet.begin() + at + n);
    std::swap_ranges(packet.begin() + l4, packet.begin() + l4 + 2, packet.begin() + l4 + 2);
    return packet;
  }
  void check(const Bytes& packet) {
    EXPECT_TRUE(test::transportChecksumValid(packet));
    EXPECT_TRUE(GetParam() || test::v4ChecksumValid(packet));
  }
  InnerPacket out(uint8_t flags, uint32_t seq = 7) {
    Bytes packet = make({.seq = seq, .flags = flags}, 0);
    proxy.onOutgoing(packet, *parseInnerPacket(packet), now);
    check(packet);
    return *parseInnerPacket(packet);
  }
  InnerPacket in(uint8_t flags, uint8_t ecn = 0) {
    Bytes packet = turned(make({.flags = flags}, ecn));
    proxy.onIncoming(packet, *parseInnerPacket(packet), now);
    check(packet);
    return *parseInnerPacket(packet);
  }
  void connect() {
    EXPECT_EQ(out(F::kSyn).tcp->flags, F::kSyn | F::kEce | F::kCwr);
    EXPECT_EQ(in(F::kSyn | F::kAck | F::kEce).tcp->flags, F::kSyn | F::kAck);
  }
};

// RFC 3168 section 6.1.1: the offer is ECE and CWR in the SYN, the acceptance ECE alone in the
// SYN-ACK.
TEST_P(EcnProxyTest, OffersAndHidesTheAcceptance) {
  connect();
}

TEST_P(EcnProxyTest, AMarkBecomesAnEchoUntilTheSenderAnswers) {
  connect();
  EXPECT_EQ(out(F::kAck).tcp->flags, F::kAck);
  InnerPacket data = in(F::kAck, kCe);
  EXPECT_EQ(data.ecn, Ecn::kNotEct) << "the host did not ask for it";
  EXPECT_EQ(out(F::kAck).tcp->flags, F::kAck | F::kEce);
  EXPECT_EQ(out(F::kAck).tcp->flags, F::kAck | F::kEce) << "every ACK, section 6.1.3";
  EXPECT_EQ(in(F::kAck | F::kCwr, kEct0).tcp->flags, F::kAck);
  EXPECT_EQ(out(F::kAck).tcp->flags, F::kAck);
}

TEST_P(EcnProxyTest, AMarkOnTheAnswerStartsANewEcho) {
  connect();
  in(F::kAck | F::kCwr, kCe);
  EXPECT_EQ(out(F::kAck).tcp->flags, F::kAck | F::kEce);
}

TEST_P(EcnProxyTest, EctIsTakenOffWithoutAMark) {
  connect();
  EXPECT_EQ(in(F::kAck, kEct0).ecn, Ecn::kNotEct);
  EXPECT_EQ(out(F::kAck).tcp->flags, F::kAck);
}

TEST_P(EcnProxyTest, AServerThatDeclinesIsLeftAlone) {
  out(F::kSyn);
  EXPECT_EQ(in(F::kSyn | F::kAck).tcp->flags, F::kSyn | F::kAck);
  EXPECT_EQ(in(F::kAck, kCe).ecn, Ecn::kCe);
  EXPECT_EQ(out(F::kAck).tcp->flags, F::kAck);
}

// A SYN-ACK that reflects the offer (both bits) does not accept it: section 6.1.1.
TEST_P(EcnProxyTest, AReflectedOfferIsNoAcceptance) {
  out(F::kSyn);
  uint8_t both = F::kSyn | F::kAck | F::kEce | F::kCwr;
  EXPECT_EQ(in(both).tcp->flags, both);
  in(F::kAck, kCe);
  EXPECT_EQ(out(F::kAck).tcp->flags, F::kAck);
}

// Section 6.1.1.1: the path may not like the offer.
TEST_P(EcnProxyTest, ASynSentAgainGoesWithoutTheOffer) {
  EXPECT_EQ(out(F::kSyn, 7).tcp->flags, F::kSyn | F::kEce | F::kCwr);
  EXPECT_EQ(out(F::kSyn, 7).tcp->flags, F::kSyn);
  EXPECT_EQ(out(F::kSyn, 7).tcp->flags, F::kSyn);
  EXPECT_EQ(out(F::kSyn, 99).tcp->flags, F::kSyn | F::kEce | F::kCwr) << "a new connection";
}

TEST_P(EcnProxyTest, AHostThatSpeaksEcnSpeaksForItself) {
  EXPECT_EQ(out(F::kSyn | F::kEce | F::kCwr).tcp->flags, F::kSyn | F::kEce | F::kCwr);
  EXPECT_EQ(in(F::kSyn | F::kAck | F::kEce).tcp->flags, F::kSyn | F::kAck | F::kEce);
  EXPECT_EQ(in(F::kAck | F::kCwr, kCe).ecn, Ecn::kCe);
  EXPECT_EQ(out(F::kAck).tcp->flags, F::kAck);
  EXPECT_EQ(proxy.flows(), 0u);
}

TEST_P(EcnProxyTest, AConnectionItHasNotSeenBeginIsNotTouched) {
  EXPECT_EQ(in(F::kAck, kCe).ecn, Ecn::kCe);
  EXPECT_EQ(out(F::kAck).tcp->flags, F::kAck);
}

INSTANTIATE_TEST_SUITE_P(Family, EcnProxyTest, testing::Bool());

TEST(EcnProxyTable, IsBoundedAndPrefersConnectionsInUse) {
  EcnProxy proxy(1, 2);
  Time now = Time{} + 1s;
  auto syn = [&](uint32_t host, uint16_t port) {
    Bytes packet = test::tcpV4({.flags = F::kSyn});
    store32(&packet[12], host);
    store16(&packet[20], port);
    proxy.onOutgoing(packet, *parseInnerPacket(packet), now);
    return parseInnerPacket(packet)->tcp->flags;
  };
  for (uint32_t i = 0; i < EcnProxy::kMaxFlows; ++i)
    EXPECT_NE(syn(0x0a000000 + i / 100, i % 100 + 1), F::kSyn);
  EXPECT_EQ(syn(0x0b000000, 1), F::kSyn) << "the table is full of young connections";
  EXPECT_EQ(proxy.flows(), EcnProxy::kMaxFlows);
  now += EcnProxy::kIdle;
  EXPECT_NE(syn(0x0b000000, 2), F::kSyn);
  EXPECT_EQ(proxy.flows(), EcnProxy::kMaxFlows);
}

}  // namespace
}  // namespace braid::ecn_proxy_test
