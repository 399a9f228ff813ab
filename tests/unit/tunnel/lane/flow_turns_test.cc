// Turns without a packet, and what flow queues know of bursts and classes.

#include <gtest/gtest.h>

#include "tests/unit/tunnel/lane/flow_queue_bench.h"

namespace braid::flow_turns_test {
namespace {

// ---- turns without a packet

/// Packets and turns in the order of service; a turn of flow n as -n, and it ends after `bytes`.
Outs serve(Bench& b, size_t n, size_t bytes = 0, bool again = false) {
  Outs v;
  while (n-- > 0) {
    if (Flow* flow = b.queues.turn(at(1s))) {
      v.push_back(-static_cast<int>(flow->key().sport));
      b.queues.endTurn(bytes, again);
    } else {
      v.push_back(b.out());
    }
  }
  return v;
}

/// The flow of a packet that has just been taken.
Flow& takenFlow(Bench& b, uint16_t n) {
  Flow* flow = nullptr;
  EXPECT_EQ(b.out(at(1s), &flow), n);
  return *flow;
}

TEST(FlowQueues, NobodyHasATurnWithoutAClaim) {
  Bench b;
  EXPECT_EQ(b.queues.turn(at(1s)), nullptr);
  b.in(1);
  EXPECT_EQ(b.queues.turn(at(1s)), nullptr);
  EXPECT_EQ(b.out(), 1);
  EXPECT_EQ(b.queues.turn(at(1s)), nullptr);
  EXPECT_EQ(b.queues.claims(), 0u);
}

TEST(FlowQueues, AClaimIsATurnInTheRound) {
  Bench b;
  for (int i = 0; i < 3; ++i) b.in(1, 1400);
  b.in(2, 1400);
  ASSERT_EQ(b.out(), 1);  // 114 left: goes on, then is old
  ASSERT_EQ(b.out(), 1);
  Flow& flow = takenFlow(b, 2);
  b.queues.claim(flow);
  EXPECT_EQ(b.queues.claims(), 1u);
  EXPECT_EQ(serve(b, 3), (Outs{-2, 1, -1})) << "flow 2 has 114 bytes of credit left";
  EXPECT_EQ(b.queues.claims(), 0u);
}

TEST(FlowQueues, ATurnCostsItsDeficit) {
  Bench b;
  for (int i = 0; i < 20; ++i) b.in(1, 1514);
  b.in(2, 1514);
  ASSERT_EQ(b.out(), 1);
  Flow& flow = takenFlow(b, 2);
  b.queues.claim(flow);
  // Both have used their quantum; from now on one packet or one turn of 1514 bytes each in a round.
  EXPECT_EQ(serve(b, 6, 1514, true), (Outs{1, -2, 1, -2, 1, -2}));
  // A turn of twice the quantum is paid back in the next round.
  ASSERT_EQ(b.out(), 1);
  ASSERT_EQ(b.queues.turn(at(1s)), &flow);
  b.queues.endTurn(2 * 1514, true);
  EXPECT_EQ(serve(b, 5, 1514, true), (Outs{1, 1, -2, 1, -2}));
}

TEST(FlowQueues, ATurnStaysUntilItEnds) {
  Bench b;
  b.in(1);
  Flow& flow = takenFlow(b, 1);
  b.queues.claim(flow);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(b.queues.turn(at(1s)), &flow);
  b.in(2);
  EXPECT_EQ(b.queues.turn(at(1s)), &flow);
  EXPECT_EQ(b.queues.peek(at(1s)), nullptr) << "it is flow 1's turn";
  EXPECT_EQ(b.out(), -1);
  EXPECT_EQ(b.queues.packets(), 1u);
  b.queues.endTurn(0, false);
  EXPECT_EQ(b.queues.turn(at(1s)), nullptr);
  EXPECT_EQ(b.out(), 2);
}

TEST(FlowQueues, ATurnThatIsNotWantedAgainIsTheLast) {
  Bench b;
  b.in(1);
  b.queues.claim(takenFlow(b, 1));
  ASSERT_NE(b.queues.turn(at(1s)), nullptr);
  b.queues.endTurn(100, false);
  EXPECT_EQ(b.queues.turn(at(1s)), nullptr);
  EXPECT_EQ(b.queues.claims(), 0u);
  EXPECT_EQ(b.out(), -1);
}

TEST(FlowQueues, ClaimsCountFlows) {
  Bench b;
  b.in(1);
  b.in(2);
  Flow& one = takenFlow(b, 1);
  Flow& two = takenFlow(b, 2);
  b.queues.claim(one);
  b.queues.claim(one);
  EXPECT_EQ(b.queues.claims(), 1u);
  b.queues.claim(two);
  EXPECT_EQ(b.queues.claims(), 2u);
  EXPECT_EQ(serve(b, 2), (Outs{-2, -1}));
  EXPECT_EQ(b.queues.claims(), 0u);
}

TEST(FlowQueues, PacketsOfTheFlowGoBeforeItsTurn) {
  Bench b;
  b.in(1, 300);
  Flow& flow = takenFlow(b, 1);
  b.queues.claim(flow);
  b.in(1, 300);
  b.in(1, 300);
  EXPECT_EQ(serve(b, 3), (Outs{1, 1, -1}));
}

TEST(FlowQueues, APacketOfTheFlowEndsTheWaitForItsTurn) {
  Bench b;
  b.in(1, 300);
  Flow& flow = takenFlow(b, 1);
  b.queues.claim(flow);
  ASSERT_EQ(b.queues.turn(at(1s)), &flow);
  b.in(1, 300);
  EXPECT_EQ(b.queues.turn(at(1s)), nullptr) << "new data goes first";
  EXPECT_EQ(serve(b, 2), (Outs{1, -1}));
}

TEST(FlowQueues, AClaimBringsAnIdleFlowBack) {
  Bench b;
  b.in(1, 1514);
  Flow& flow = takenFlow(b, 1);
  EXPECT_EQ(b.out(), -1) << "no longer in the round";
  for (int i = 0; i < 10; ++i) b.in(2);
  b.outs(4);
  b.queues.claim(flow);
  EXPECT_EQ(b.queues.turn(at(1s)), &flow) << "as a new flow";
}

TEST(FlowQueues, AFlowWithAClaimIsNotEvicted) {
  Bench b({.maxFlows = 1});
  b.in(1);
  b.queues.claim(takenFlow(b, 1));
  EXPECT_EQ(b.in(2), Drop::kFlowTableFull);
  ASSERT_NE(b.queues.turn(at(1s)), nullptr);
  EXPECT_EQ(b.in(2), Drop::kFlowTableFull) << "during its turn";
  b.queues.endTurn(0, false);
  EXPECT_EQ(b.out(), -1);
  EXPECT_EQ(b.in(2), std::nullopt);
}

TEST(FlowQueues, TheByteBoundHoldsDuringATurn) {
  Bench b({.queueBytes = 2000});
  b.in(1);
  b.queues.claim(takenFlow(b, 1));
  ASSERT_NE(b.queues.turn(at(1s)), nullptr);
  for (int i = 0; i < 5; ++i) b.in(2);
  EXPECT_LE(b.queues.bytes(), 2000u);
  b.queues.endTurn(0, false);
  EXPECT_EQ(b.out(), 2);
}

// ---- what is known of a flow: bursts, their end, its class

TEST(FlowQueues, ABurstIsWhatComesWithoutAPause) {
  Bench b;
  b.in(1, 1000, at(1s));
  b.in(1, 500, at(1s));
  b.outs(2, at(1s));
  b.in(1, 100, at(1s) + FlowBurst::kGap - 1ns);
  EXPECT_EQ(b.flow(1)->burst.bytes(), 1600u);
  b.outs(1, at(1s));
  b.in(1, 100, at(1s) + 2 * FlowBurst::kGap - 1ns);
  EXPECT_EQ(b.flow(1)->burst.bytes(), 100u) << "a new one";
}

TEST(FlowQueues, WhatWaitsIsOfTheBurst) {
  Bench b;
  b.in(1, 1000, at(1s));
  b.in(1, 1000, at(2s));
  EXPECT_EQ(b.flow(1)->burst.bytes(), 2000u) << "the sender has not been quiet: its packet waits here";
}

TEST(FlowQueues, FinEndsAFlowAndPushAShortBurst) {
  Bench b;
  auto in = [&](uint16_t n, size_t size, PacketHint hint) {
    b.queues.enqueue(b.make(n, size), key(n), true, false, at(1s), hint);
    return b.flow(n)->burst.ended();
  };
  EXPECT_FALSE(in(1, 1000, {}));
  EXPECT_TRUE(in(1, 1000, {.push = true}));
  EXPECT_FALSE(in(1, 1000, {})) << "its last packet says";
  EXPECT_TRUE(in(1, 1000, {.fin = true}));
  size_t sent = 0;
  for (; sent + 1000 <= FlowBurst::kShort; sent += 1000) EXPECT_TRUE(in(2, 1000, {.push = true})) << sent;
  EXPECT_FALSE(in(2, 1000, {.push = true})) << "a bulk sender pushes often";
  EXPECT_TRUE(in(2, 1000, {.fin = true}));
}

TEST(FlowQueues, ALoneDatagramEndsItsFlow) {
  Bench b;
  auto in = [&](bool reliable, Duration t) {
    auto n = static_cast<uint16_t>(reliable ? 1 : 2);
    b.in(n, 100, at(t), reliable);
    b.outs(2, at(t));
    return b.flow(n)->burst.ended();
  };
  EXPECT_TRUE(in(false, 1s));
  EXPECT_FALSE(in(false, 1s + FlowBurst::kGap - 1ns)) << "a stream";
  EXPECT_TRUE(in(false, 2s)) << "the frame of a call";
  EXPECT_FALSE(in(true, 1s)) << "TCP says so itself";
}

TEST(FlowQueues, TheClassIsThatOfTheFirstPacket) {
  Bench b({.maxFlows = 1});
  auto in = [&](uint16_t n, uint8_t recoveryClass) {
    b.queues.enqueue(b.make(n, 100), key(n), true, false, at(1s), {.recoveryClass = recoveryClass});
    b.outs(2);
    return b.flow(n)->recoveryClass();
  };
  EXPECT_EQ(in(1, 3), 3);
  EXPECT_EQ(in(1, 5), 3);
  EXPECT_EQ(in(2, 5), 5) << "another flow on the same slot";
  EXPECT_EQ(b.flow(2)->burst.bytes(), 100u);
}

TEST(FlowQueues, FlowsOfAClassThatIsGoneAreOfNone) {
  Bench b;
  for (uint8_t n = 1; n <= 3; ++n)
    b.queues.enqueue(b.make(n, 100), key(n), true, false, at(1s), {.recoveryClass = n});
  b.queues.limitClasses(3);
  EXPECT_EQ(b.flow(1)->recoveryClass(), 1);
  EXPECT_EQ(b.flow(2)->recoveryClass(), 2);
  EXPECT_EQ(b.flow(3)->recoveryClass(), 0);
}

}  // namespace
}  // namespace braid::flow_turns_test
