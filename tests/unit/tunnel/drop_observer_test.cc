// Who is told of packets that the tunnel throws away for good, and which flows it carries.

#include "tunnel/lane/drop_observer.h"

#include <gtest/gtest.h>

#include "tests/unit/tunnel/lane/flow_queue_bench.h"
#include "tests/unit/tunnel/lane/some_flows.h"
#include "tunnel/lane/data_ledger.h"

namespace braid::drop_observer_test {
namespace {

struct Observer final : DropObserver {
  std::vector<uint8_t> first;  ///< first byte of each
  void onPacketDropped(ByteView packet) override { first.push_back(packet[0]); }
};

struct DropObserverTest : testing::Test {
  PacketPool pool{1500, 1000};
  Observer observer;
  FlowQueueOptions options;

  Packet packet(uint8_t first, size_t size) {
    Packet p = pool.allocate();
    p.setSize(size);
    p.data()[0] = first;
    return p;
  }
};

// 3 packets of 1000 bytes in 2500: those that have waited longest go, until half of what there was is left.
TEST_F(DropObserverTest, TheByteBoundShowsTcpPacketsOnly) {
  options.queueBytes = 2500;
  for (bool reliable : {true, false}) {
    observer.first.clear();
    FlowQueues queues(options, 1, &observer);
    for (uint8_t n = 1; n <= 3; ++n) queues.enqueue(packet(n, 1000), key(1), reliable, false, at(1s));
    EXPECT_EQ(queues.drops()[static_cast<size_t>(Drop::kQueueFull)], 2u);
    EXPECT_EQ(observer.first, reliable ? (std::vector<uint8_t>{1, 2}) : std::vector<uint8_t>{});
  }
}

TEST_F(DropObserverTest, AqmDropsAreShown) {
  options.codel = {10ms, 100ms};
  FlowQueues queues(options, 1, &observer);
  for (uint8_t n = 0; n < 100; ++n) queues.enqueue(packet(n, 1000), key(1), true, false, at(1s));
  Flow* flow = nullptr;
  for (int i = 0; i < 40; ++i) queues.pop(at(1s + i * 10ms), flow);
  EXPECT_FALSE(observer.first.empty());
  EXPECT_EQ(observer.first.size(), queues.drops()[static_cast<size_t>(Drop::kAqm)]);
}

TEST_F(DropObserverTest, AFlowIsCarriedUntilAllOfItIsDelivered) {
  FlowQueues queues(options, 1);
  DataLedger ledger(3s);
  EXPECT_FALSE(queues.isCarrying(key(1)));
  queues.enqueue(packet(1, 100), key(1), true, false, at(1s));
  EXPECT_TRUE(queues.isCarrying(key(1)));
  EXPECT_FALSE(queues.isCarrying(key(2)));
  ASSERT_NE(queues.peek(at(1s)), nullptr);
  EXPECT_TRUE(queues.isCarrying(key(1))) << "in the hand";
  Flow* flow = nullptr;
  Packet taken = queues.pop(at(1s), flow);
  const Datum* datum = ledger.create(*flow, std::move(taken), at(1s));
  ledger.onSent(datum, 0, 0);
  EXPECT_TRUE(queues.isCarrying(key(1))) << "on its way";
  ledger.onDelivered(datum, true);
  EXPECT_FALSE(queues.isCarrying(key(1)));
  ledger.forget(datum);
}

TEST_F(DropObserverTest, WhatCouldNotBeRepairedInTimeIsShown) {
  DataLedger ledger(3s, &observer);
  SomeFlows flows;
  for (bool reliable : {true, false}) {
    const Datum* datum = ledger.create(flows.make(reliable), packet(reliable, 100), at(1s));
    ledger.onSent(datum, 0, 0);
    ledger.onLost(datum, at(5s));
    ledger.forget(datum);
  }
  EXPECT_EQ(observer.first, std::vector<uint8_t>{1});
}

// The peer is gone: nobody could make use of the knowledge.
TEST_F(DropObserverTest, WhatADownPeerLosesIsNotShown) {
  DataLedger ledger(3s, &observer);
  SomeFlows flows;
  const Datum* datum = ledger.create(flows.make(), packet(1, 100), at(1s));
  ledger.onSent(datum, 0, 0);
  ledger.onLost(datum, at(1s));
  ledger.giveUpAll(Drop::kPeerDown);
  EXPECT_TRUE(observer.first.empty());
  ledger.forget(datum);
}

}  // namespace
}  // namespace braid::drop_observer_test
