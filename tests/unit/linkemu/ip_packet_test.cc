#include "linkemu/ip_packet.h"

#include <gtest/gtest.h>

#include <bit>

#include "base/bytes.h"

namespace braid::ip_packet_test {
namespace {

/// The Internet checksum of an IPv4 header by RFC 1071; 0 when the header is correct.
uint16_t headerSum(ByteView header) {
  uint32_t sum = 0;
  for (size_t i = 0; i < 20; i += 2) sum += load16(header.data() + i);
  while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<uint16_t>(~sum);
}

class IpPacketTest : public testing::Test {
 protected:
  IpPacket ipv4(uint8_t ecn) {
    uint8_t header[28] = {0x45, ecn, 0,  28, 0x12, 0x34, 0x40, 0, 64, 17,
                          0,    0,   10, 0,  0,    1,    10,   0, 0,  2};
    store16(header + 10, headerSum(header));
    return {pool_.copy(header), &pool_};
  }
  PacketPool pool_{1500, 2};
};

TEST_F(IpPacketTest, MarksBothEctCodepointsAndMendsTheChecksum) {
  for (uint8_t ect : {1, 2}) {
    IpPacket item = ipv4(ect);
    EXPECT_TRUE(markCe(item));
    EXPECT_EQ(item.packet.data()[1], 3);
    EXPECT_EQ(headerSum(item.packet.view()), 0);
  }
}

TEST_F(IpPacketTest, LeavesNotEctAndCeAlone) {
  for (uint8_t ecn : {0, 3}) {
    IpPacket item = ipv4(ecn);
    EXPECT_FALSE(markCe(item));
    EXPECT_EQ(item.packet.data()[1], ecn);
    EXPECT_EQ(headerSum(item.packet.view()), 0);
  }
}

TEST_F(IpPacketTest, ClearsTheEcnFieldAndMendsTheChecksum) {
  for (uint8_t ecn : {0, 1, 2, 3}) {
    IpPacket item = ipv4(ecn);
    EXPECT_EQ(clearEcn(item), ecn != 0);
    EXPECT_EQ(item.packet.data()[1], 0);
    EXPECT_EQ(headerSum(item.packet.view()), 0);
  }
}

TEST_F(IpPacketTest, CorruptsOneBit) {
  Random random(4);
  for (int i = 0; i < 200; ++i) {
    IpPacket item = ipv4(0);
    IpPacket clean = ipv4(0);
    corrupt(item, random);
    int flipped = 0;
    for (size_t b = 0; b < item.packet.size(); ++b) {
      flipped +=
          std::popcount(static_cast<uint8_t>(item.packet.data()[b] ^ clean.packet.data()[b]));
    }
    ASSERT_EQ(flipped, 1);
  }
  IpPacket nothing{pool_.allocate(), &pool_};
  corrupt(nothing, random);
  EXPECT_TRUE(nothing.packet.empty());
}

TEST_F(IpPacketTest, ClonesWhileThePoolLasts) {
  IpPacket item = ipv4(1);
  std::optional<IpPacket> copy = clone(item);
  ASSERT_TRUE(copy);
  EXPECT_NE(copy->packet.data(), item.packet.data());
  EXPECT_TRUE(std::equal(copy->packet.view().begin(), copy->packet.view().end(),
                         item.packet.view().begin()));
  EXPECT_FALSE(clone(item));
}

}  // namespace
}  // namespace braid::ip_packet_test
