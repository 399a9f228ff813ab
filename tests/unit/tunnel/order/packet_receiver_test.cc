#include "tunnel/order/packet_receiver.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/tunnel/wire/number_literals.h"

namespace braid::packet_receiver_test {
namespace {

constexpr Time kNow = Time{} + 1s;
constexpr FlowNumber kOrdered(3);
constexpr FlowNumber kTimely = kDatagramFlow + 3;
using Dsns = std::vector<uint32_t>;

/// Packets that carry their DSN.
struct PacketReceiverTest : testing::Test {
  QueueOptions options;
  PacketPool pool{100, 64};
  PacketReceiver receiver{options, pool};

  /// Packets delivered at once.
  Packet in(FlowNumber flow, uint32_t dsn) {
    Packet p = pool.allocate();
    p.setSize(50);
    store32(p.data(), dsn);
    return receiver.onData({flow, dsn, {}}, std::move(p), kNow);
  }
  /// Packets delivered after waiting for their order.
  Dsns out() {
    Dsns dsns;
    for (Packet p; receiver.poll(p);) dsns.push_back(load32(p.data()));
    return dsns;
  }
  uint64_t drops(Drop cause) const { return receiver.drops()[static_cast<size_t>(cause)]; }
};

TEST_F(PacketReceiverTest, AnOrderedFlowWaitsForItsTurn) {
  EXPECT_FALSE(in(kOrdered, 0));
  EXPECT_FALSE(in(kOrdered, 2));
  EXPECT_EQ(out(), Dsns{0});
  EXPECT_EQ(receiver.heldPackets(), 1u);
  EXPECT_EQ(receiver.heldBytes(), 50u);
  EXPECT_EQ(receiver.nextDeadline(), kNow + kHoldTime);
  in(kOrdered, 1);
  EXPECT_EQ(out(), (Dsns{1, 2}));
  EXPECT_EQ(receiver.nextDeadline(), kNever);
}

TEST_F(PacketReceiverTest, ATimelyPacketIsHandedOutAtOnce) {
  in(kOrdered, 0);
  for (uint32_t dsn : {2u, 0u, 1u}) {
    Packet p = in(kTimely, dsn);
    ASSERT_TRUE(p);
    EXPECT_EQ(load32(p.data()), dsn) << "as they come";
  }
  EXPECT_EQ(out(), Dsns{0}) << "the two kinds have numbers of their own";
}

TEST_F(PacketReceiverTest, EachIsHandedOutOnce) {
  in(kOrdered, 0);
  in(kOrdered, 0);
  EXPECT_EQ(out(), Dsns{0});
  EXPECT_TRUE(in(kTimely, 0));
  EXPECT_FALSE(in(kTimely, 0));
  EXPECT_EQ(drops(Drop::kDuplicate), 2u);
  EXPECT_EQ(receiver.counts().innerReceivedPackets, 2u);
  EXPECT_EQ(receiver.counts().innerReceivedBytes, 100u);
  EXPECT_EQ(pool.inUse(), 0u);
}

TEST_F(PacketReceiverTest, WhatTheSenderGaveUpIsNotWaitedFor) {
  in(kOrdered, 0);
  in(kOrdered, 3);
  EXPECT_EQ(out(), Dsns{0});
  receiver.onSkip({kOrdered, 1_dsn, 2}, kNow);
  EXPECT_EQ(out(), Dsns{3});
}

TEST_F(PacketReceiverTest, AHoleIsWaitedForAsLongAsTheSlowestPathNeeds) {
  in(kOrdered, 1);
  receiver.setPatience(60ms);
  EXPECT_EQ(receiver.nextDeadline(), kNow + kHoldTime);
  receiver.setPatience(6s);
  EXPECT_EQ(receiver.nextDeadline(), kNow + 6s);
  receiver.setOptions(options);
  EXPECT_EQ(receiver.nextDeadline(), kNow + 6s) << "a reload changes nothing";
  options.holdTime = 20ms;
  receiver.setOptions(options);
  EXPECT_EQ(receiver.nextDeadline(), kNow + 20ms) << "it is fixed now";
  receiver.setPatience(7s);
  EXPECT_EQ(receiver.nextDeadline(), kNow + 20ms);
}

TEST_F(PacketReceiverTest, AHoleIsWaitedForAsLongAsConfigured) {
  in(kOrdered, 1);
  receiver.onTimer(kNow + kHoldTime - 1ns);
  EXPECT_EQ(out(), Dsns{});
  receiver.onTimer(kNow + kHoldTime);
  EXPECT_EQ(out(), Dsns{1});
  options.holdTime = 1ms;
  receiver.setOptions(options);
  in(kOrdered, 3);
  EXPECT_EQ(receiver.nextDeadline(), kNow + 1ms);
}

TEST_F(PacketReceiverTest, NothingIsHeldWhileBuffersAreShort) {
  in(kOrdered, 1);
  in(kOrdered, 3);
  std::vector<Packet> others;
  while (pool.limit() - pool.inUse() > pool.limit() / 16) others.push_back(pool.allocate());
  EXPECT_EQ(out(), Dsns{});
  in(kOrdered, 5);
  EXPECT_EQ(out(), Dsns{1}) << "what has waited longest";
  EXPECT_EQ(drops(Drop::kHoldOverflow), 1u);
}

// ---- memory

/// Two peers that share the memory for per-flow state.
struct PacketReceiverMemoryTest : testing::Test {
  MemoryQuota memory{1 << 20};
  QueueOptions options;
  PacketPool pool{100, 64};
  PacketReceiver receiver{options, pool, &memory};
  PacketReceiver honest{options, pool, &memory};
  Packet out;

  /// True when the packet is delivered at once.
  bool in(PacketReceiver& to, FlowNumber flow, uint32_t dsn = 0, Time now = kNow) {
    Packet p = pool.allocate();
    p.setSize(50);
    Packet timely = to.onData({flow, dsn, {}}, std::move(p), now);
    bool any = static_cast<bool>(timely);
    for (; to.poll(out); out.reset()) any = true;
    return any;
  }
  static uint64_t refused(const PacketReceiver& of) {
    return of.drops()[static_cast<size_t>(Drop::kFlowTableFull)];
  }
  /// Packets of all possible flow numbers, the most distant first.
  void nameAllFlows() {
    for (size_t start = 0; start < 64; ++start) {
      for (size_t flow = start; flow < 65536; flow += 64)
        in(receiver, FlowNumber(static_cast<uint16_t>(flow)));
    }
  }
};

// Found by review: one packet of flow 65535 used 4 MB, and all flows of a peer used 26 MB, until
// the session ended.
TEST_F(PacketReceiverMemoryTest, OnePacketTakesLittle) {
  EXPECT_TRUE(in(receiver, FlowNumber(65535)));
  EXPECT_TRUE(in(receiver, FlowNumber(32767)));
  EXPECT_LT(receiver.footprint(), 8000u);
  EXPECT_EQ(memory.used(), receiver.footprint());
}

TEST_F(PacketReceiverMemoryTest, WhoNamesAllFlowsIsRefusedAndNobodyElse) {
  nameAllFlows();
  EXPECT_LE(memory.used(), memory.limit());
  EXPECT_GT(refused(receiver), 1000u);
  for (uint16_t flow = 0; flow < 100; ++flow) {
    EXPECT_TRUE(in(honest, FlowNumber(flow)));
    EXPECT_TRUE(in(honest, kDatagramFlow + flow));
  }
  EXPECT_EQ(refused(honest), 0u);
  EXPECT_LE(memory.used(), memory.limit());
}

TEST_F(PacketReceiverMemoryTest, WhatIsHeldForNothingIsReleasedWhenOthersNeedTheMemory) {
  for (uint16_t flow = 0; flow < 4000; ++flow) {
    for (uint64_t dsn = 64; dsn < 2000; dsn += 64)
      receiver.onSkip({FlowNumber(flow), Dsn(dsn), 1}, kNow);
  }
  EXPECT_LE(memory.used(), memory.limit());
  for (uint16_t flow = 0; flow < 1000; ++flow) EXPECT_TRUE(in(honest, FlowNumber(flow)));
  EXPECT_EQ(refused(honest), 0u);
}

TEST_F(PacketReceiverMemoryTest, AFlowIsForgottenWhenNothingComesOfIt) {
  for (uint16_t flow = 0; flow < 640; ++flow) {
    in(receiver, FlowNumber(flow));
    in(receiver, kDatagramFlow + flow);
  }
  size_t all = receiver.footprint();
  receiver.onTimer(kNow + PacketReceiver::kForget - 1ns);
  EXPECT_EQ(receiver.footprint(), all);
  in(receiver, 3_flow, 1, kNow + 30s);
  receiver.onTimer(kNow + PacketReceiver::kForget + 10s);
  EXPECT_LT(receiver.footprint(), 640u * 20);
  EXPECT_EQ(memory.used(), receiver.footprint());
  EXPECT_TRUE(in(receiver, 3_flow, 2, kNow + 80s));
  EXPECT_TRUE(in(receiver, 5_flow, 1, kNow + 80s)) << "it goes on where it was";
  EXPECT_FALSE(in(receiver, 5_flow, 0, kNow + 80s));
  EXPECT_TRUE(in(receiver, kDatagramFlow + 5, 1, kNow + 80s));
}

}  // namespace
}  // namespace braid::packet_receiver_test
