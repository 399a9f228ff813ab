#include "tunnel/lane/packet_receiver.h"

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
  LaneOptions options;
  PacketPool pool{100, 64};
  PacketReceiver receiver{options, pool};

  /// What is handed out at once.
  Packet in(FlowNumber flow, uint32_t dsn) {
    Packet p = pool.allocate();
    p.setSize(50);
    store32(p.data(), dsn);
    return receiver.onData({flow, dsn, {}}, std::move(p), kNow);
  }
  /// What has waited for its turn.
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
  EXPECT_EQ(receiver.nextDeadline(), kNow + options.holdTime);
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
  EXPECT_EQ(receiver.counts().innerReceivedPackets, 4u) << "duplicates count as arrived";
  EXPECT_EQ(receiver.counts().innerReceivedBytes, 200u);
  EXPECT_EQ(pool.inUse(), 0u);
}

TEST_F(PacketReceiverTest, WhatTheSenderGaveUpIsNotWaitedFor) {
  in(kOrdered, 0);
  in(kOrdered, 3);
  EXPECT_EQ(out(), Dsns{0});
  receiver.onSkip({kOrdered, 1_dsn, 2}, kNow);
  EXPECT_EQ(out(), Dsns{3});
}

TEST_F(PacketReceiverTest, AHoleIsWaitedForAsLongAsConfigured) {
  in(kOrdered, 1);
  receiver.onTimer(kNow + options.holdTime - 1ns);
  EXPECT_EQ(out(), Dsns{});
  receiver.onTimer(kNow + options.holdTime);
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

}  // namespace
}  // namespace braid::packet_receiver_test
