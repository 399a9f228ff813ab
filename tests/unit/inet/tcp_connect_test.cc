// Packets that begin TCP connections, and the answer that refuses one.

#include <gtest/gtest.h>

#include <vector>

#include "inet/tcp.h"
#include "tests/unit/inet/packets.h"

namespace braid::tcp_connect_test {
namespace {

using test::addr;

/// An IP packet with a TCP header of 20 bytes, and `data` bytes behind it.
std::vector<uint8_t> segment(bool v6, uint8_t flags, size_t data = 0) {
  PacketPool pool(1500, 1);
  Address src = addr(v6 ? "2001:db8::1" : "10.0.0.1"), dst = addr(v6 ? "2001:db8::2" : "10.0.0.2");
  TcpAck ack;
  ack.key = {src.family, ip::kTcp, 50'000, 443, src.bytes, dst.bytes};
  ack.seq = {0xffffffff};
  Packet packet = buildTcpAck(pool, ack);
  size_t header = v6 ? ip::kV6Header : ip::kV4Header;
  packet.data()[header + ip::kTcpFlags] = flags;
  if (data > 0) std::fill_n(packet.append(data), data, uint8_t{0});
  uint16_t length = static_cast<uint16_t>(packet.size() - (v6 ? header : 0));
  store16(packet.data() + (v6 ? ip::kV6PayloadLength : ip::kV4TotalLength), length);
  return {packet.view().begin(), packet.view().end()};
}

TEST(TcpConnect, OnlyASynAloneBeginsAConnection) {
  using F = TcpFields;
  for (bool v6 : {false, true}) {
    EXPECT_TRUE(isTcpConnect(segment(v6, F::kSyn)));
    EXPECT_TRUE(isTcpConnect(segment(v6, F::kSyn | F::kEce | F::kCwr))) << "RFC 3168 section 6.1.1";
    for (uint8_t other : {F::kAck, F::kRst, F::kFin})
      EXPECT_FALSE(isTcpConnect(segment(v6, F::kSyn | other))) << int{other};
    EXPECT_FALSE(isTcpConnect(segment(v6, F::kAck)));
  }
}

TEST(TcpConnect, WhateverElseComesBeginsNone) {
  for (bool v6 : {false, true}) {
    std::vector<uint8_t> syn = segment(v6, TcpFields::kSyn);
    size_t flags = (v6 ? ip::kV6Header : ip::kV4Header) + ip::kTcpFlags;
    for (size_t n = 0; n <= flags; ++n) EXPECT_FALSE(isTcpConnect(ByteView(syn).first(n))) << n;
    std::vector<uint8_t> udp = syn;
    udp[v6 ? 6 : 9] = ip::kUdp;
    EXPECT_FALSE(isTcpConnect(udp));
    std::vector<uint8_t> unknown = syn;
    unknown[0] = 0x55;
    EXPECT_FALSE(isTcpConnect(unknown));
  }
  std::vector<uint8_t> later = segment(false, TcpFields::kSyn);
  store16(later.data() + ip::kV4Fragment, 1);
  EXPECT_FALSE(isTcpConnect(later));
  std::vector<uint8_t> longHeader = segment(false, TcpFields::kSyn);
  longHeader[0] = 0x4f;
  EXPECT_FALSE(isTcpConnect(longHeader)) << "its TCP header is beyond the end";
}

TEST(TcpConnect, ARefusalAnswersTheSyn) {
  PacketPool pool(1500, 1);
  for (bool v6 : {false, true}) {
    for (uint32_t data : {0u, 100u}) {
      std::vector<uint8_t> syn = segment(v6, TcpFields::kSyn, data);
      Packet packet = buildTcpRefusal(pool, syn);
      ASSERT_TRUE(packet);
      InnerPacket p = parseInnerPacket(packet.view()).value();
      EXPECT_EQ(p.size, packet.size());
      EXPECT_EQ(p.flowKey(), parseInnerPacket(syn)->flowKey().reversed());
      ASSERT_TRUE(p.tcp);
      EXPECT_EQ(p.tcp->flags, TcpFields::kRst | TcpFields::kAck);
      EXPECT_EQ(p.tcp->ack, data) << "behind the SYN, whose number is 2^32 - 1, and its data";
      EXPECT_EQ(p.tcp->seq, 0u);
      EXPECT_TRUE(test::transportChecksumValid(packet.view()));
      EXPECT_TRUE(v6 || test::v4ChecksumValid(packet.view()));
    }
  }
}

TEST(TcpConnect, WhatIsNoTcpIsNotRefused) {
  PacketPool pool(1500, 1);
  std::vector<uint8_t> udp = segment(false, TcpFields::kSyn);
  udp[9] = ip::kUdp;
  EXPECT_FALSE(buildTcpRefusal(pool, udp));
  EXPECT_FALSE(buildTcpRefusal(pool, {}));
}

}  // namespace
}  // namespace braid::tcp_connect_test
