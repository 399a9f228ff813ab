#include "inet/inner_packet.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/unit/inet/packets.h"

namespace braid::inner_packet_test {
namespace {

using test::Bytes;
using test::V4;
using test::V6;

InnerPacket parsed(const Bytes& b) {
  auto p = parseInnerPacket(b);
  EXPECT_TRUE(p);
  return p.value_or(InnerPacket{});
}

TEST(InnerPacketTest, Ipv4Udp) {
  Bytes b = test::v4({.tos = 0xb9, .fragment = ip::kV4DontFragment},
                     test::udp(53, 4000, test::pattern(10)));
  InnerPacket p = parsed(b);
  EXPECT_TRUE(p.isV4());
  EXPECT_EQ(p.src, test::addr("10.0.0.1"));
  EXPECT_EQ(p.dst, test::addr("10.0.0.2"));
  EXPECT_EQ(p.protocol, ip::kUdp);
  EXPECT_EQ(p.size, 38u);
  EXPECT_EQ(p.l4Offset, 20u);
  EXPECT_EQ(p.l4Length, 18u);
  EXPECT_EQ(p.payloadLength, 10u);
  EXPECT_EQ(p.ecn, Ecn::kEct1);
  EXPECT_EQ(p.dscp, 46);
  EXPECT_EQ(p.hopLimit, 64);
  EXPECT_TRUE(p.dontFragment);
  EXPECT_FALSE(p.isFragment);
  EXPECT_TRUE(p.hasPorts);
  EXPECT_FALSE(p.tcp);
  EXPECT_EQ(p.flowKey().toString(), "udp 10.0.0.1:53 > 10.0.0.2:4000");
}

TEST(InnerPacketTest, Ipv4Tcp) {
  InnerPacket p = parsed(test::tcpV4({.flags = TcpFields::kSyn | TcpFields::kEce,
                                      .options = {2, 4, 5, 0xb4},
                                      .payload = test::pattern(3)}));
  ASSERT_TRUE(p.tcp);
  EXPECT_EQ(p.tcp->seq, 0x01020304u);
  EXPECT_EQ(p.tcp->ack, 0x0a0b0c0du);
  EXPECT_EQ(p.tcp->headerLength, 24);
  EXPECT_EQ(p.tcp->window, 4096);
  EXPECT_EQ(p.tcp->payloadLength, 3u);
  EXPECT_EQ(p.payloadLength, 3u);
  EXPECT_TRUE(p.tcp->isSyn());
  EXPECT_FALSE(p.tcp->isFin());
  EXPECT_FALSE(p.tcp->isRst());
  EXPECT_FALSE(p.tcp->isAck());
  EXPECT_TRUE(p.tcp->flags & TcpFields::kEce);
  EXPECT_EQ(p.flowKey().toString(), "tcp 10.0.0.1:443 > 10.0.0.2:5000");
}

TEST(InnerPacketTest, TcpFlags) {
  EXPECT_TRUE(parsed(test::tcpV4({.flags = TcpFields::kFin})).tcp->isFin());
  EXPECT_TRUE(parsed(test::tcpV4({.flags = TcpFields::kRst})).tcp->isRst());
  EXPECT_TRUE(parsed(test::tcpV4({.flags = TcpFields::kAck})).tcp->isAck());
}

TEST(InnerPacketTest, Ipv6Tcp) {
  InnerPacket p = parsed(test::tcpV6({.payload = test::pattern(100)}, 0xb8 | 2));
  EXPECT_TRUE(p.isV6());
  EXPECT_EQ(p.size, 160u);
  EXPECT_EQ(p.l4Offset, 40u);
  EXPECT_EQ(p.dscp, 46);
  EXPECT_EQ(p.ecn, Ecn::kEct0);
  EXPECT_EQ(p.hopLimit, 63);
  EXPECT_TRUE(p.dontFragment);
  ASSERT_TRUE(p.tcp);
  EXPECT_EQ(p.tcp->payloadLength, 100u);
  EXPECT_EQ(p.flowKey().toString(), "tcp [2001:db8::1]:443 > [2001:db8::2]:5000");
}

TEST(InnerPacketTest, TrailingBytesAreNotThePacket) {
  for (Bytes b : {test::tcpV4({}), test::tcpV6({})}) {
    size_t size = b.size();
    b.resize(size + 26, 0xee);
    InnerPacket p = parsed(b);
    EXPECT_EQ(p.size, size);
    EXPECT_EQ(p.tcp->payloadLength, 0u);
  }
}

TEST(InnerPacketTest, EveryTruncationIsRefused) {
  for (const Bytes& b : {test::tcpV4({.payload = {1}}), test::tcpV6({.payload = {1}})}) {
    for (size_t n = 0; n < b.size(); ++n) EXPECT_FALSE(parseInnerPacket(ByteView(b).first(n))) << n;
  }
}

TEST(InnerPacketTest, OtherVersionsAreRefused) {
  for (int version = 0; version < 16; ++version) {
    Bytes b = test::tcpV4({.payload = test::pattern(60)});
    b[0] = static_cast<uint8_t>(version << 4 | 5);
    b[4] = b[5] = 0;
    EXPECT_EQ(parseInnerPacket(b).has_value(), version == 4 || version == 6) << version;
  }
}

TEST(InnerPacketTest, BadIpv4LengthsAreRefused) {
  const Bytes good = test::v4({}, test::udp(1, 2, {}));
  Bytes b = good;
  b[0] = 0x44;  // header below 20
  EXPECT_FALSE(parseInnerPacket(b));
  b = good;
  b[0] = 0x48;  // header of 32 in a packet of 28
  EXPECT_FALSE(parseInnerPacket(b));
  for (uint16_t length : {0, 19, 29, 65535}) {
    b = good;
    store16(&b[2], length);
    EXPECT_FALSE(parseInnerPacket(b)) << length;
  }
  store16(&b[2], 20);
  EXPECT_EQ(parsed(b).l4Length, 0u);
  EXPECT_FALSE(parsed(b).hasPorts);
}

TEST(InnerPacketTest, Ipv4OptionsMoveTheTransport) {
  InnerPacket p = parsed(test::v4({.options = {1, 1, 1, 0}}, test::udp(7, 8, {})));
  EXPECT_EQ(p.l4Offset, 24u);
  EXPECT_EQ(p.sport, 7);
  EXPECT_EQ(p.dport, 8);
}

TEST(InnerPacketTest, Ipv4FragmentsShareAKeyWithoutPorts) {
  Bytes payload = test::udp(53, 4000, test::pattern(8));
  InnerPacket first = parsed(test::v4({.fragment = ip::kV4MoreFragments}, payload));
  EXPECT_TRUE(first.isFragment);
  EXPECT_TRUE(first.isFirstFragment);
  EXPECT_FALSE(first.isLaterFragment());
  EXPECT_TRUE(first.hasPorts);
  EXPECT_EQ(first.sport, 53);

  for (uint16_t field : {ip::kV4MoreFragments | 2, 2, 0x1fff}) {
    InnerPacket later = parsed(test::v4({.fragment = field}, payload));
    EXPECT_TRUE(later.isLaterFragment());
    EXPECT_FALSE(later.hasPorts);
    EXPECT_EQ(later.sport, 0);
    EXPECT_EQ(later.flowKey(), first.flowKey());
  }
  EXPECT_EQ(first.flowKey().toString(), "udp 10.0.0.1 > 10.0.0.2");
}

TEST(InnerPacketTest, FragmentsHaveNoTcp) {
  EXPECT_FALSE(
      parsed(test::v4({.protocol = ip::kTcp, .fragment = ip::kV4MoreFragments}, test::tcp({})))
          .tcp);
  EXPECT_FALSE(parsed(test::v4({.protocol = ip::kTcp, .fragment = 1}, test::tcp({}))).tcp);
}

TEST(InnerPacketTest, MalformedTcpIsStillAnIpPacket) {
  Bytes shortHeader = test::v4({.protocol = ip::kTcp}, test::pattern(19));
  EXPECT_FALSE(parsed(shortHeader).tcp);
  EXPECT_TRUE(parsed(shortHeader).hasPorts);
  EXPECT_FALSE(parsed(test::v4({.protocol = ip::kTcp}, test::pattern(3))).hasPorts);
  for (uint8_t offset : {0x00, 0x40, 0x60, 0xf0}) {
    Bytes segment = test::tcp({});
    segment[12] = offset;
    InnerPacket p = parsed(test::v4({.protocol = ip::kTcp}, segment));
    EXPECT_FALSE(p.tcp) << int{offset};
    EXPECT_EQ(p.payloadLength, 20u);
  }
}

TEST(InnerPacketTest, WhichProtocolsHavePorts) {
  for (int protocol = 0; protocol < 256; ++protocol) {
    auto p = parsed(test::v4({.protocol = static_cast<uint8_t>(protocol)}, test::pattern(20)));
    bool expected =
        protocol == 6 || protocol == 17 || protocol == 33 || protocol == 132 || protocol == 136;
    EXPECT_EQ(p.hasPorts, expected) << protocol;
    EXPECT_EQ(p.flowKey().sport != 0, expected) << protocol;
  }
}

/// An extension header of 8 * (units + 1) bytes.
Bytes extension(uint8_t next, uint8_t units = 0) {
  Bytes b(8 * (units + 1u), 0);
  b[0] = next;
  b[1] = units;
  return b;
}

Bytes fragmentHeader(uint8_t next, uint16_t offset, bool more) {
  Bytes b(8);
  b[0] = next;
  store16(&b[2], static_cast<uint16_t>(offset << 3 | (more ? 1 : 0)));
  return b;
}

Bytes joined(std::initializer_list<Bytes> parts) {
  Bytes all;
  for (const Bytes& part : parts) test::append(all, part);
  return all;
}

TEST(InnerPacketTest, Ipv6ExtensionsAreWalked) {
  Bytes authentication(12 + 4);
  authentication[0] = ip::kUdp;
  authentication[1] = 2;  // (2 + 2) * 4 bytes, RFC 4302 section 2.2
  Bytes payload = joined({extension(ip::kRouting), extension(ip::kDestinationOptions, 2),
                          extension(ip::kAuthentication), authentication, test::udp(5, 6, {9})});
  InnerPacket p = parsed(test::v6({.nextHeader = ip::kHopByHop}, payload));
  EXPECT_EQ(p.protocol, ip::kUdp);
  EXPECT_EQ(p.l4Offset, 40u + 8 + 24 + 8 + 16);
  EXPECT_EQ(p.sport, 5);
  EXPECT_EQ(p.payloadLength, 1u);
}

TEST(InnerPacketTest, Ipv6ExtensionsAreBounded) {
  for (int n : {kMaxExtensionHeaders, kMaxExtensionHeaders + 1}) {
    Bytes payload;
    for (int i = 1; i < n; ++i) test::append(payload, extension(ip::kDestinationOptions));
    test::append(payload, extension(ip::kUdp));
    test::append(payload, test::udp(5, 6, {}));
    Bytes b = test::v6({.nextHeader = ip::kDestinationOptions}, payload);
    EXPECT_EQ(parseInnerPacket(b).has_value(), n == kMaxExtensionHeaders);
  }
}

TEST(InnerPacketTest, CutIpv6ExtensionsAreRefused) {
  EXPECT_FALSE(parseInnerPacket(test::v6({.nextHeader = ip::kHopByHop}, {})));
  EXPECT_FALSE(parseInnerPacket(test::v6({.nextHeader = ip::kHopByHop}, Bytes(7, 0))));
  EXPECT_FALSE(parseInnerPacket(test::v6({.nextHeader = ip::kFragment}, Bytes(7, 0))));
  Bytes tooLong = extension(ip::kUdp);
  tooLong[1] = 1;
  EXPECT_FALSE(parseInnerPacket(test::v6({.nextHeader = ip::kRouting}, tooLong)));
}

TEST(InnerPacketTest, Ipv6HeadersThatEndTheChain) {
  InnerPacket none = parsed(test::v6({.nextHeader = ip::kNoNextHeader}, {}));
  EXPECT_EQ(none.l4Length, 0u);
  InnerPacket esp = parsed(test::v6({.nextHeader = ip::kEsp}, test::pattern(30)));
  EXPECT_EQ(esp.protocol, ip::kEsp);
  EXPECT_EQ(esp.l4Offset, 40u);
}

TEST(InnerPacketTest, Ipv6Fragments) {
  Bytes payload = test::udp(53, 4000, test::pattern(8));
  V6 outer{.nextHeader = ip::kFragment};
  InnerPacket first = parsed(test::v6(outer, joined({fragmentHeader(ip::kUdp, 0, true), payload})));
  EXPECT_TRUE(first.isFirstFragment);
  EXPECT_EQ(first.sport, 53);
  EXPECT_EQ(first.l4Offset, 48u);

  for (bool more : {false, true}) {
    InnerPacket later =
        parsed(test::v6(outer, joined({fragmentHeader(ip::kUdp, 2, more), payload})));
    EXPECT_TRUE(later.isLaterFragment());
    EXPECT_FALSE(later.hasPorts);
    EXPECT_EQ(later.l4Length, payload.size());
    EXPECT_EQ(later.flowKey(), first.flowKey());
  }

  InnerPacket atomic =
      parsed(test::v6(outer, joined({fragmentHeader(ip::kUdp, 0, false), payload})));
  EXPECT_FALSE(atomic.isFragment);
  EXPECT_EQ(atomic.flowKey().sport, 53);
}

TEST(InnerPacketTest, LaterFragmentDataAreNotReadAsHeaders) {
  // The data of a later fragment may begin with anything, though its first header was an extension.
  Bytes payload = joined({fragmentHeader(ip::kDestinationOptions, 1, false), Bytes(3, 0xff)});
  InnerPacket p = parsed(test::v6({.nextHeader = ip::kFragment}, payload));
  EXPECT_TRUE(p.isLaterFragment());
  EXPECT_EQ(p.l4Length, 3u);
}

TEST(InnerPacketTest, OffsetsStayWithinAnyMutatedPacket) {
  constexpr uint64_t kSeed = 5;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random(kSeed);
  Bytes chain =
      joined({extension(ip::kFragment), fragmentHeader(ip::kTcp, 0, false), test::tcp({})});
  const Bytes seeds[] = {test::tcpV4({.options = {2, 4, 5, 0xb4}}),
                         test::tcpV6({.payload = {1, 2}}),
                         test::v6({.nextHeader = ip::kHopByHop}, chain)};
  for (int round = 0; round < 20000; ++round) {
    Bytes b = seeds[random.below(3)];
    for (uint64_t n = 1 + random.below(3); n > 0; --n) {
      b[random.below(b.size())] = static_cast<uint8_t>(random.next());
    }
    b.resize(b.size() - random.below(4));
    b.shrink_to_fit();
    auto p = parseInnerPacket(b);
    if (!p) continue;
    ASSERT_LE(p->size, b.size());
    ASSERT_EQ(p->l4Offset + p->l4Length, p->size);
    ASSERT_LE(p->payloadLength, p->l4Length);
    if (p->tcp) {
      ASSERT_EQ(p->tcp->headerLength + p->tcp->payloadLength, p->l4Length);
    }
  }
}

}  // namespace
}  // namespace braid::inner_packet_test
