#include "tunnel/peer/staged_packets.h"

#include <gtest/gtest.h>

namespace braid::staged_packets_test {
namespace {

struct StagedPacketsTest : testing::Test {
  PacketPool pool{2048, 4096};
  MemoryQuota quota{600};
  DropCounts drops{};
  StagedPackets room{quota, drops};
  Time now = Time{} + 1s;

  StagedPacket packet(size_t size) {
    Packet p = pool.allocate();
    p.append(size);
    return {std::move(p), PacketOrigin::kNobody};
  }
  void fill(StagedPackets& some, size_t count) {
    for (size_t i = 1; i <= count; ++i) some.add(packet(i));
  }
  std::vector<size_t> sizes() {
    std::vector<size_t> all;
    for (StagedPacket p; room.poll(p);) all.push_back(p.packet.size());
    return all;
  }
  uint64_t dropped() const { return drops[static_cast<size_t>(Drop::kPeerDown)]; }
};

TEST_F(StagedPacketsTest, IsOpenForAWhileFromEachOpening) {
  EXPECT_FALSE(room.isOpen(now));
  room.open(now);
  EXPECT_TRUE(room.isOpen(now + StagedPackets::kMaxWait - 1ns));
  EXPECT_FALSE(room.isOpen(now + StagedPackets::kMaxWait));
  EXPECT_EQ(room.deadline(), kNever) << "nothing waits";
  room.add(packet(1));
  EXPECT_EQ(room.deadline(), now + StagedPackets::kMaxWait);
}

TEST_F(StagedPacketsTest, TheFirstOnesStayAndLeaveInTheirOrder) {
  room.open(now);
  fill(room, StagedPackets::kMaxPackets + 10);
  EXPECT_EQ(dropped(), 10u);
  std::vector<size_t> all = sizes();
  ASSERT_EQ(all.size(), StagedPackets::kMaxPackets);
  for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], i + 1);
  EXPECT_TRUE(room.empty());
  EXPECT_EQ(quota.used(), 0u);
}

TEST_F(StagedPacketsTest, SharesTheQuotaOfQueuesAndWhoHasMostGivesWay) {
  DropCounts others{};
  StagedPackets second{quota, others}, third{quota, others};
  room.open(now);
  fill(room, 256);
  fill(second, 256);
  fill(third, 256);
  EXPECT_LE(quota.used(), 600u);
  EXPECT_EQ(quota.used() + dropped() + others[static_cast<size_t>(Drop::kPeerDown)], 3 * 256u);
  std::vector<size_t> left = sizes();
  ASSERT_GE(left.size(), 128u);
  for (size_t i = 0; i < left.size(); ++i) EXPECT_EQ(left[i], i + 1) << "what came last gives way";
}

}  // namespace
}  // namespace braid::staged_packets_test
