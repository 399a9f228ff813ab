// The drop observer, which is told of packets that the tunnel drops finally, and of the flows that
// the tunnel carries.

#include "tests/unit/tunnel/wire/number_literals.h"
#include "tunnel/queue/data_tracker.h"

#include <gtest/gtest.h>

#include "tests/unit/tunnel/queue/packet_lane_bench.h"
#include "tests/unit/tunnel/queue/some_flows.h"

namespace braid::drop_observer_test {
namespace {

struct Observer final : DropObserver {
  std::vector<uint8_t> first;  ///< first byte of each dropped packet
  void onPacketDropped(ByteView packet) override { first.push_back(packet[0]); }
};

struct DropObserverTest : testing::Test {
  PacketPool pool{1500, 1000};
  Observer observer;
  InnerFlowTable flows{{}, 1};
  DrrScheduler round;
  PacketQueuesOptions options;

  Packet packet(uint8_t first, size_t size) {
    Packet p = pool.allocate();
    p.setSize(size);
    p.data()[0] = first;
    return p;
  }
};

// 3 packets with room for 2.5: the packets that have waited longest are dropped until half of the
// bytes are left.
TEST_F(DropObserverTest, TheByteBoundShowsTcpPacketsOnly) {
  options.queueBytes = packet(0, 1000).footprint() * 5 / 2;
  for (bool reliable : {true, false}) {
    observer.first.clear();
    PacketQueues lane(options, flows, round, &observer);
    uint16_t flow = reliable ? 1 : 2;
    for (uint8_t n = 1; n <= 3; ++n)
      lane.enqueue(packet(n, 1000), key(flow), reliable, false, at(1s));
    EXPECT_EQ(lane.drops()[static_cast<size_t>(Drop::kQueueFull)], 2u);
    EXPECT_EQ(observer.first, reliable ? (std::vector<uint8_t>{1, 2}) : std::vector<uint8_t>{});
    DrrCursor walk(round);
    while (walk.offer(at(1s))) walk.take();
  }
}

TEST_F(DropObserverTest, AqmDropsAreShown) {
  options.codel = {10ms, 100ms};
  PacketQueues lane(options, flows, round, &observer);
  for (uint8_t n = 0; n < 100; ++n) lane.enqueue(packet(n, 1000), key(1), true, false, at(1s));
  for (int i = 0; i < 40; ++i) {
    DrrCursor walk(round);
    if (walk.offer(at(1s + i * 10ms))) walk.take();
  }
  EXPECT_FALSE(observer.first.empty());
  EXPECT_EQ(observer.first.size(), lane.drops()[static_cast<size_t>(Drop::kAqm)]);
}

TEST_F(DropObserverTest, AFlowIsCarriedUntilAllOfItIsDelivered) {
  PacketLaneBench b;
  b.in(1, 100);
  const Flow& flow = *b.flow(1);
  EXPECT_TRUE(flow.isCarried());
  ASSERT_TRUE(DrrCursor(b.round).offer(at(1s)));
  EXPECT_TRUE(flow.isCarried()) << "in the hand";
  const DataUnit* datum = b.send();
  EXPECT_TRUE(flow.isCarried()) << "on its way";
  b.dataTracker.onDelivered(datum, true);
  EXPECT_FALSE(flow.isCarried());
  b.dataTracker.forget(datum);
}

TEST_F(DropObserverTest, WhatCouldNotBeRepairedInTimeIsShown) {
  DataTracker dataTracker(3s, &observer);
  SomeFlows some;
  for (bool reliable : {true, false}) {
    const DataUnit* datum = dataTracker.create(some.make(reliable), packet(reliable, 100), at(1s));
    dataTracker.onSent(datum, 0_subflow, 0_pn);
    dataTracker.onLost(datum, at(5s));
    dataTracker.forget(datum);
  }
  EXPECT_EQ(observer.first, std::vector<uint8_t>{1});
}

// The peer is gone, so nobody could use the information.
TEST_F(DropObserverTest, WhatADownPeerLosesIsNotShown) {
  DataTracker dataTracker(3s, &observer);
  SomeFlows some;
  const DataUnit* datum = dataTracker.create(some.make(), packet(1, 100), at(1s));
  dataTracker.onSent(datum, 0_subflow, 0_pn);
  dataTracker.onLost(datum, at(1s));
  dataTracker.giveUpAll(Drop::kPeerDown);
  EXPECT_TRUE(observer.first.empty());
  dataTracker.forget(datum);
}

}  // namespace
}  // namespace braid::drop_observer_test
