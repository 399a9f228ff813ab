// The events of packets that the tunnel drops finally, and the flows that the tunnel carries.

#include "tests/unit/tunnel/wire/number_literals.h"
#include "tunnel/queue/data_tracker.h"

#include <gtest/gtest.h>

#include "tests/unit/tunnel/queue/packet_queue_bench.h"
#include "tests/unit/tunnel/queue/some_flows.h"
#include "tests/unit/tunnel/session/kept_packets.h"

namespace braid::dropped_packets_test {
namespace {

struct DroppedPacketsTest : testing::Test {
  PacketPool pool{1500, 1000};
  KeptPackets packets;
  InnerFlowTable flows{{}, 1};
  DrrScheduler round;
  PacketQueuesOptions options;

  /// The first byte of each packet that was dropped.
  std::vector<uint8_t> dropped() {
    std::vector<uint8_t> first;
    for (const auto& bytes : packets.bytes(PacketEvent::Kind::kDropped)) first.push_back(bytes[0]);
    return first;
  }
  Packet packet(uint8_t first, size_t size) {
    Packet p = pool.allocate();
    p.setSize(size);
    p.data()[0] = first;
    return p;
  }
};

// 3 packets with room for 2.5: the packets that have waited longest are dropped until half of the
// bytes are left.
TEST_F(DroppedPacketsTest, TheByteBoundShowsTcpPacketsOnly) {
  options.queueBytes = packet(0, 1000).footprint() * 5 / 2;
  for (bool reliable : {true, false}) {
    size_t before = dropped().size();
    PacketQueues lane(options, flows, round, &packets.in());
    uint16_t flow = reliable ? 1 : 2;
    for (uint8_t n = 1; n <= 3; ++n)
      lane.enqueue(packet(n, 1000), key(flow), reliable, false, at(1s));
    EXPECT_EQ(lane.drops()[static_cast<size_t>(Drop::kQueueFull)], 2u);
    EXPECT_EQ(dropped(), (std::vector<uint8_t>{1, 2})) << "those of the TCP flow";
    EXPECT_EQ(dropped().size() - before, reliable ? 2u : 0u);
    DrrCursor walk(round);
    while (walk.peek(at(1s))) walk.take();
  }
}

TEST_F(DroppedPacketsTest, AqmDropsAreShown) {
  options.codel = {10ms, 100ms};
  PacketQueues lane(options, flows, round, &packets.in());
  for (uint8_t n = 0; n < 100; ++n) lane.enqueue(packet(n, 1000), key(1), true, false, at(1s));
  for (int i = 0; i < 40; ++i) {
    DrrCursor walk(round);
    if (walk.peek(at(1s + i * 10ms))) walk.take();
  }
  EXPECT_FALSE(dropped().empty());
  EXPECT_EQ(dropped().size(), lane.drops()[static_cast<size_t>(Drop::kAqm)]);
}

TEST_F(DroppedPacketsTest, AFlowIsCarriedUntilAllOfItIsDelivered) {
  PacketLaneBench b;
  b.in(1, 100);
  const Flow& flow = *b.flow(1);
  EXPECT_TRUE(flow.isCarried());
  ASSERT_TRUE(DrrCursor(b.round).peek(at(1s)));
  EXPECT_TRUE(flow.isCarried()) << "in the hand";
  UnitRef unit = b.send();
  EXPECT_TRUE(flow.isCarried()) << "on its way";
  b.dataTracker.onDelivered(unit, true);
  EXPECT_FALSE(flow.isCarried());
  b.dataTracker.release(unit);
}

TEST_F(DroppedPacketsTest, WhatCouldNotBeRepairedInTimeIsShown) {
  DataTracker dataTracker(3s, &packets.in());
  SomeFlows some;
  for (bool reliable : {true, false}) {
    UnitRef unit = dataTracker.create(some.make(reliable), packet(reliable, 100), at(1s));
    dataTracker.onSent(unit, 0_subflow, 0_pn);
    dataTracker.onLost(unit, at(5s));
    dataTracker.release(unit);
  }
  EXPECT_EQ(dropped(), std::vector<uint8_t>{1});
}

// The peer is gone, so nobody could use the information.
TEST_F(DroppedPacketsTest, WhatADownPeerLosesIsNotShown) {
  DataTracker dataTracker(3s, &packets.in());
  SomeFlows some;
  UnitRef unit = dataTracker.create(some.make(), packet(1, 100), at(1s));
  dataTracker.onSent(unit, 0_subflow, 0_pn);
  dataTracker.onLost(unit, at(1s));
  dataTracker.giveUpRepairs(Drop::kPeerDown);
  EXPECT_TRUE(dropped().empty());
  dataTracker.release(unit);
}

}  // namespace
}  // namespace braid::dropped_packets_test
