#include "inet/tcp.h"

#include <gtest/gtest.h>

#include "tests/unit/inet/packets.h"

namespace braid::tcp_ack_test {
namespace {

using test::addr;

TcpAck sample(bool v6) {
  Address src = addr(v6 ? "2001:db8::1" : "10.0.0.1"), dst = addr(v6 ? "2001:db8::2" : "10.0.0.2");
  TcpAck a;
  a.key = {src.family, ip::kTcp, 443, 5000, src.bytes, dst.bytes};
  a.seq = {0xfffffff0};
  a.ack = {77};
  a.window = 512;
  a.hopLimit = 57;
  a.dscp = 46;
  a.flowLabel = 0xabcde;
  return a;
}

TEST(TcpAckTest, BothFamiliesPlain) {
  PacketPool pool(1500, 4);
  for (bool v6 : {false, true}) {
    Packet packet = buildTcpAck(pool, sample(v6));
    ASSERT_TRUE(packet);
    EXPECT_EQ(packet.size(), v6 ? 60u : 40u);
    InnerPacket p = parseInnerPacket(packet.view()).value();
    EXPECT_EQ(p.flowKey(), sample(v6).key);
    EXPECT_EQ(p.tcp->seq, 0xfffffff0u);
    EXPECT_EQ(p.tcp->ack, 77u);
    EXPECT_EQ(p.tcp->window, 512);
    EXPECT_EQ(p.tcp->flags, TcpFields::kAck);
    EXPECT_EQ(p.tcp->payloadLength, 0u);
    EXPECT_EQ(p.hopLimit, 57);
    EXPECT_EQ(p.dscp, 46);
    EXPECT_EQ(p.ecn, Ecn::kNotEct);
    EXPECT_TRUE(p.dontFragment);
    EXPECT_TRUE(test::transportChecksumValid(packet.view()));
    if (v6) {
      EXPECT_EQ(load32(packet.data()) & 0xfffff, 0xabcdeu);
    } else {
      EXPECT_TRUE(test::v4ChecksumValid(packet.view()));
    }
  }
}

TEST(TcpAckTest, OptionsReadBack) {
  PacketPool pool(1500, 4);
  TcpAck a = sample(false);
  std::array<SeqRange, 2> blocks{{{{100}, {200}}, {{300}, {400}}}};
  a.timestamps = {11, 12};
  a.sacks = blocks;
  Packet packet = buildTcpAck(pool, a);
  ASSERT_EQ(packet.size(), 20u + 20 + 12 + 20);
  EXPECT_TRUE(test::transportChecksumValid(packet.view()));
  TcpOptionFields f = parseTcpOptions(packet.view().subspan(40));
  EXPECT_EQ(f.timestamps, (TcpTimestamps{11, 12}));
  ASSERT_EQ(f.sackCount, 2);
  EXPECT_EQ(f.sacks[1], blocks[1]);
}

TEST(TcpAckTest, AsManyBlocksAsFit) {
  PacketPool pool(1500, 4);
  TcpAck a = sample(true);
  std::array<SeqRange, 5> blocks{};
  for (uint32_t i = 0; i < 5; ++i) blocks[i] = {{i * 10}, {i * 10 + 5}};
  a.sacks = blocks;
  EXPECT_EQ(parseTcpOptions(buildTcpAck(pool, a).view().subspan(60)).sackCount, 4);
  a.timestamps = {1, 2};
  EXPECT_EQ(parseTcpOptions(buildTcpAck(pool, a).view().subspan(60)).sackCount, 3);
}

TEST(TcpAckTest, NoBufferNoPacket) {
  PacketPool none(1500, 0), small(39, 4), pool(1500, 4);
  EXPECT_FALSE(buildTcpAck(none, sample(false)));
  EXPECT_FALSE(buildTcpAck(small, sample(false)));
  TcpAck a = sample(false);
  a.key.family = Address::Family::kNone;
  EXPECT_FALSE(buildTcpAck(pool, a));
}

}  // namespace
}  // namespace braid::tcp_ack_test
