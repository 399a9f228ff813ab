// Flows that are passed: their packet waits for a better path, and others go first.

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"
#include "tests/unit/tunnel/lane/flow_queue_bench.h"

namespace braid::flow_pass_test {
namespace {

/// The flow whose packet is shown; -1 when there is none.
int shown(Bench& b) {
  const Packet* p = b.queues.peek(at(1s));
  return p ? load16(p->data() + 20) : -1;
}

TEST(FlowPass, TheNextFlowIsShown) {
  Bench b;
  for (uint16_t n : {1, 2, 3}) b.in(n);
  ASSERT_EQ(shown(b), 1);
  EXPECT_TRUE(b.queues.pass(at(1s)));
  EXPECT_EQ(shown(b), 2);
  EXPECT_TRUE(b.queues.pass(at(1s)));
  EXPECT_EQ(b.queues.held(), 2u);
  EXPECT_EQ(b.out(), 3);
  EXPECT_EQ(shown(b), -1);
  EXPECT_FALSE(b.queues.pass(at(1s)));
  EXPECT_EQ(b.queues.packets(), 2u);
  EXPECT_EQ(b.queues.bytes(), 2000u);
}

TEST(FlowPass, RewindShowsThemAgainInTheirOrder) {
  Bench b;
  for (uint16_t n : {1, 2, 3}) b.in(n);
  b.queues.pass(at(1s));
  b.queues.pass(at(1s));
  b.queues.rewind();
  EXPECT_EQ(shown(b), 1);
  b.queues.pass(at(1s));
  EXPECT_EQ(shown(b), 2);
  b.queues.rewind();
  EXPECT_EQ(b.outs(4), (Outs{1, 2, 3, -1}));
  EXPECT_EQ(b.queues.held(), 0u);
}

TEST(FlowPass, WhatIsTakenFromTheMiddleLeavesTheOthers) {
  Bench b;
  for (uint16_t n : {1, 2, 3}) b.in(n);
  b.queues.pass(at(1s));
  b.queues.pass(at(1s));
  b.queues.rewind();
  b.queues.pass(at(1s));
  EXPECT_EQ(b.out(), 2);
  EXPECT_EQ(shown(b), 3) << "behind it";
  b.queues.rewind();
  EXPECT_EQ(b.outs(2), (Outs{1, 3}));
}

TEST(FlowPass, AFlowGoesOnWithItsTurn) {
  Bench b;
  for (int i = 0; i < 4; ++i) b.in(1, 500);
  for (int i = 0; i < 4; ++i) b.in(2, 500);
  ASSERT_EQ(shown(b), 1);
  b.queues.pass(at(1s));
  ASSERT_EQ(b.out(), 2);
  b.queues.rewind();
  // Flow 1 has 1014 left: two more and one that is paid back. Then flow 2, of whose turn the same is left.
  EXPECT_EQ(b.outs(7), (Outs{1, 1, 1, 1, 2, 2, 2}));
}

TEST(FlowPass, TheOneThatIsSettledStaysFirst) {
  Bench b;
  for (int i = 0; i < 3; ++i) b.in(1, 1000);
  for (int i = 0; i < 3; ++i) b.in(2, 1000);
  b.queues.pass(at(1s));
  ASSERT_EQ(shown(b), 2);
  b.queues.rewind();
  EXPECT_EQ(b.out(), 1);
  ASSERT_EQ(shown(b), 2);
  // Now flow 2 is passed, and flow 1 is where it was: 514 left.
  b.queues.pass(at(1s));
  EXPECT_EQ(b.outs(2), (Outs{1, 1}));
  b.queues.rewind();
  EXPECT_EQ(b.outs(4), (Outs{2, 2, 2, -1}));
}

TEST(FlowPass, AQueueThatGrowsMeanwhileWaitsToo) {
  Bench b;
  b.in(1);
  b.queues.pass(at(1s));
  b.in(1, 700);
  EXPECT_EQ(shown(b), -1);
  b.queues.rewind();
  EXPECT_EQ(b.outs(3), (Outs{1, 1, -1}));
}

TEST(FlowPass, NoMoreThanSome) {
  Bench b;
  for (uint16_t n = 1; n <= FairRound::kMaxHeld + 1; ++n) b.in(n);
  for (size_t i = 0; i < FairRound::kMaxHeld; ++i) EXPECT_TRUE(b.queues.pass(at(1s)));
  EXPECT_FALSE(b.queues.pass(at(1s)));
  EXPECT_EQ(shown(b), FairRound::kMaxHeld + 1) << "nothing has changed";
  EXPECT_EQ(b.queues.held(), FairRound::kMaxHeld);
}

TEST(FlowPass, ATurnWithoutAPacketWaitsForThoseThatWerePassed) {
  Bench b;
  b.in(1);
  Flow* flow = nullptr;
  ASSERT_EQ(b.out(at(1s), &flow), 1);
  b.in(2);
  b.queues.pass(at(1s));
  b.queues.claim(*flow);
  EXPECT_EQ(b.queues.turn(at(1s)), flow);
  b.queues.rewind();
  EXPECT_EQ(b.queues.turn(at(1s)), nullptr);
  EXPECT_EQ(b.out(), 2);
  EXPECT_EQ(b.queues.turn(at(1s)), flow);
}

TEST(FlowPass, TheByteBoundHoldsForThem) {
  Bench b({.queueBytes = 4000});
  b.in(1);
  b.queues.pass(at(1s));
  for (int i = 0; i < 10; ++i) b.in(1);
  EXPECT_LE(b.queues.bytes(), 4000u);
  EXPECT_GT(b.drops(Drop::kQueueFull), 0u);
  b.queues.rewind();
  while (b.out() != -1) {
  }
  EXPECT_EQ(b.queues.bytes(), 0u);
  EXPECT_EQ(b.queues.packets(), 0u);
}

TEST(FlowPass, AFlowThatWasPassedIsNotForgotten) {
  Bench b({.maxFlows = 1});
  b.in(1);
  b.queues.pass(at(1s));
  EXPECT_EQ(b.in(2), Drop::kFlowTableFull);
  b.queues.onTimer(at(1000s));
  b.queues.rewind();
  EXPECT_EQ(b.out(), 1);
}

TEST(FlowPass, ANewFlowBehindWhatIsShown) {
  Bench b;
  for (int i = 0; i < 4; ++i) b.in(1);
  ASSERT_EQ(shown(b), 1);
  EXPECT_FALSE(b.queues.newWaits());
  b.outs(2);
  ASSERT_EQ(shown(b), 1);
  EXPECT_FALSE(b.queues.newWaits());
  b.in(2);
  EXPECT_TRUE(b.queues.newWaits());
  b.queues.pass(at(1s));
  ASSERT_EQ(shown(b), 2);
  EXPECT_FALSE(b.queues.newWaits()) << "it is shown";
  b.queues.pass(at(1s));
  EXPECT_FALSE(b.queues.newWaits());
}

TEST(FlowPass, WhoIsSmall) {
  Bench b;
  for (int i = 0; i < 6; ++i) b.in(1);
  EXPECT_TRUE(b.flow(1)->burst.isSmall());
  b.in(1, 1);
  EXPECT_FALSE(b.flow(1)->burst.isSmall());
  b.outs(7);
  b.in(1, 100, at(1s) + FlowBurst::kGap);
  EXPECT_TRUE(b.flow(1)->burst.isSmall()) << "it was quiet";
}

TEST(FlowPass, DrainByHand) {
  Bench b;
  for (int i = 0; i < 10; ++i) b.in(1);
  for (int i = 0; i < 5; ++i) b.in(2);
  b.in(3);
  // All are new.
  EXPECT_EQ(b.queues.drain(*b.flow(2)), 5000u) << "sparse ones go first";
  b.outs(6);  // two of flow 1, two of flow 2, flow 3; its empty queue stays for a round; flow 1
  ASSERT_EQ(b.flow(1)->queue.counts().packets + b.flow(2)->queue.counts().packets, 5u);
  // 10 left. Flow 2 has three: with two others that is at most 9.
  EXPECT_EQ(b.queues.drain(*b.flow(2)), 3u * 3000u);
  EXPECT_EQ(b.queues.drain(*b.flow(1)), b.queues.bytes()) << "no more than there is";
}

TEST(FlowPass, PatienceEndsWithAPause) {
  Bench b;
  Flow* flow = nullptr;
  b.in(1, 1000, at(1s));
  b.in(1, 1000, at(1s));
  b.out(at(1s), &flow);
  flow->patience = {.since = at(1s), .bulk = true};
  b.in(1, 1000, at(2s));
  EXPECT_TRUE(flow->patience.bulk) << "its packets have waited here";
  b.out(at(2s));
  EXPECT_EQ(flow->patience.since, at(1s));
  b.out(at(2s));
  EXPECT_EQ(flow->patience.since, kNever) << "nothing waits";
  EXPECT_TRUE(flow->patience.bulk);
  b.in(1, 1000, at(2s) + FlowQueues::kBulkGap - 1ns);
  b.out(at(2s));
  EXPECT_TRUE(flow->patience.bulk);
  b.in(1, 1000, at(2s) + 2 * FlowQueues::kBulkGap - 1ns);
  EXPECT_FALSE(flow->patience.bulk);
}

// Flows with a backlog, two of which want only every second opening: those get nearly what the others do
// (they miss rounds that end while they wait), and alike flows get the same within what is in hand.
TEST(FlowPass, SharesStayFair) {
  Bench b({.queueBytes = 64 << 20});
  Random random(3);
  constexpr uint16_t kFlows = 5;
  for (int i = 0; i < 3000; ++i) {
    for (uint16_t n = 1; n <= kFlows; ++n) b.in(n, 100 + random.below(1400));
  }
  std::map<int, double> sent;
  for (int i = 0; i < 5000; ++i) {
    b.queues.rewind();
    while (i % 2 && shown(b) <= 2) ASSERT_TRUE(b.queues.pass(at(1s)));
    Flow* flow = nullptr;
    Packet p = b.queues.pop(at(1s), flow);
    ASSERT_TRUE(p);
    sent[load16(p.data() + 20)] += static_cast<double>(p.size());
  }
  EXPECT_NEAR(sent[4], sent[3], 2 * FairRound::kQuantum);
  EXPECT_NEAR(sent[5], sent[3], 2 * FairRound::kQuantum);
  EXPECT_NEAR(sent[2], sent[1], 0.02 * sent[1]);
  EXPECT_GE(sent[1], 0.85 * sent[3]);
}

}  // namespace
}  // namespace braid::flow_pass_test
