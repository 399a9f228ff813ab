// Flows that are passed over: their data unit waits for a better path, and other flows are served
// first.

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"
#include "tests/unit/tunnel/queue/drr_bench.h"

namespace braid::drr_pass_test {
namespace {

using Order = RoundBench::Order;

TEST(RoundPass, TheNextFlowIsOffered) {
  RoundBench b;
  for (int n : {1, 2, 3}) b.in(n, 1000, 2);
  DrrCursor walk(b.round);
  ASSERT_EQ(b.look(walk), 1);
  EXPECT_TRUE(walk.pass(b.kNow));
  EXPECT_EQ(b.look(walk), 2);
  EXPECT_TRUE(walk.pass(b.kNow));
  EXPECT_EQ(b.round.held(), 2u);
  EXPECT_EQ(b.take(walk), 3);
  EXPECT_EQ(b.take(walk), 3) << "the same walk";
  EXPECT_EQ(b.look(walk), 0);
  EXPECT_FALSE(walk.pass(b.kNow));
  EXPECT_EQ(b.round.bytes(), 4000u);
}

TEST(RoundPass, ANewWalkOffersThemAgainInTheirOrder) {
  RoundBench b;
  for (int n : {1, 2, 3}) b.in(n, 1000);
  DrrCursor first(b.round);
  first.pass(b.kNow);
  first.pass(b.kNow);
  DrrCursor second(b.round);
  EXPECT_EQ(b.look(second), 1);
  second.pass(b.kNow);
  EXPECT_EQ(b.look(second), 2);
  EXPECT_EQ(b.serve(4), (Order{1, 2, 3, 0}));
  EXPECT_EQ(b.round.held(), 0u);
}

TEST(RoundPass, WhatIsTakenFromTheMiddleLeavesTheOthers) {
  RoundBench b;
  for (int n : {1, 2, 3}) b.in(n, 1000);
  DrrCursor first(b.round);
  first.pass(b.kNow);
  first.pass(b.kNow);
  DrrCursor second(b.round);
  second.pass(b.kNow);
  EXPECT_EQ(b.take(second), 2);
  EXPECT_EQ(b.look(second), 3) << "behind it";
  EXPECT_EQ(b.serve(2), (Order{1, 3}));
}

TEST(RoundPass, AFlowGoesOnWithItsTurn) {
  RoundBench b;
  b.in(1, 500, 4);
  b.in(2, 500, 4);
  DrrCursor walk(b.round);
  walk.pass(b.kNow);
  ASSERT_EQ(b.take(walk), 2);
  // Flow 1 has 1014 left: it sends two more units, and one that is paid back later. Then flow 2,
  // which has the same left of its turn.
  EXPECT_EQ(b.serve(7), (Order{1, 1, 1, 1, 2, 2, 2}));
}

TEST(RoundPass, TheOneThatIsSettledStaysFirst) {
  RoundBench b;
  b.in(1, 1000, 3);
  b.in(2, 1000, 3);
  DrrCursor first(b.round);
  first.pass(b.kNow);
  ASSERT_EQ(b.look(first), 2);
  DrrCursor second(b.round);
  EXPECT_EQ(b.take(second), 1);
  ASSERT_EQ(b.look(second), 2);
  // Now flow 2 is passed over, and flow 1 continues with the 514 it had left.
  second.pass(b.kNow);
  EXPECT_EQ(b.take(second), 1);
  EXPECT_EQ(b.take(second), 1);
  EXPECT_EQ(b.serve(4), (Order{2, 2, 2, 0}));
}

TEST(RoundPass, WhatComesMeanwhileWaitsToo) {
  RoundBench b;
  b.in(1, 1000);
  DrrCursor walk(b.round);
  walk.pass(b.kNow);
  b.in(1, 700);
  EXPECT_EQ(b.look(walk), 0);
  EXPECT_EQ(b.serve(3), (Order{1, 1, 0}));
}

TEST(RoundPass, NoMoreThanSome) {
  RoundBench b;
  constexpr int kOneMore = DrrScheduler::kMaxHeld + 1;
  for (int n = 1; n <= kOneMore; ++n) b.in(n, 1000);
  DrrCursor walk(b.round);
  for (size_t i = 0; i < DrrScheduler::kMaxHeld; ++i) EXPECT_TRUE(walk.pass(b.kNow));
  EXPECT_FALSE(walk.pass(b.kNow));
  EXPECT_EQ(b.look(walk), kOneMore) << "nothing has changed";
  EXPECT_EQ(b.round.held(), DrrScheduler::kMaxHeld);
}

TEST(RoundPass, ATurnWithoutDataWaitsForThoseThatWerePassed) {
  RoundBench b;
  b.in(1, 1000);
  ASSERT_EQ(b.serve(1), Order{1});
  b.in(2, 1000);
  DrrCursor walk(b.round);
  walk.pass(b.kNow);
  b.round.claim(b.flow(1));
  EXPECT_EQ(b.look(walk), -1);
  EXPECT_EQ(b.serve(2), (Order{2, -1}));
}

TEST(RoundPass, ANewFlowBehindWhatIsOffered) {
  RoundBench b;
  b.in(1, 1000, 4);
  DrrCursor walk(b.round);
  ASSERT_EQ(b.look(walk), 1);
  EXPECT_FALSE(b.round.newWaits(b.flow(1)));
  b.take(walk);
  b.take(walk);
  ASSERT_EQ(b.look(walk), 1);
  EXPECT_FALSE(b.round.newWaits(b.flow(1)));
  b.in(2, 1000);
  EXPECT_TRUE(b.round.newWaits(b.flow(1)));
  walk.pass(b.kNow);
  ASSERT_EQ(b.look(walk), 2);
  EXPECT_FALSE(b.round.newWaits(b.flow(2))) << "it is offered";
  walk.pass(b.kNow);
  EXPECT_FALSE(b.round.newWaits(b.flow(2)));
}

// Protection of a flow that has ended may have no path, while a small flow behind it has one.
TEST(RoundPass, ADeferredTurnLetsNewFlowsGoFirst) {
  RoundBench b;
  b.round.claim(b.flow(1));
  DrrCursor alone(b.round);
  EXPECT_FALSE(alone.deferClaim()) << "nothing is offered";
  ASSERT_EQ(b.look(alone), -1);
  EXPECT_FALSE(alone.deferClaim()) << "nobody is behind it";
  EXPECT_EQ(b.look(alone), -1);

  b.in(2, 1000);
  b.round.claim(b.flow(3));
  DrrCursor walk(b.round);
  ASSERT_EQ(b.look(walk), -1);
  EXPECT_TRUE(walk.deferClaim());
  EXPECT_EQ(b.look(walk), 2);
  EXPECT_FALSE(walk.deferClaim()) << "data is no turn";
  EXPECT_EQ(b.take(walk), 2);
  EXPECT_EQ(b.serve(4), (Order{-3, -1, 0, 0})) << "no turn is lost, none comes twice";
  EXPECT_EQ(b.round.scheduled(), 0u);
}

TEST(RoundPass, ADeferredTurnOfAnOldFlowIsTheNextOfTheOldOnes) {
  RoundBench b;
  b.in(1, 1000, 4);
  b.in(2, 1000, 4);
  b.serve(4);  // both are old
  b.round.claim(b.flow(1));
  b.waiting[1].clear();
  b.round.onDropped(b.flow(1), b.flow(1).waiting());
  DrrCursor walk(b.round);
  while (b.look(walk) != -1) b.take(walk);
  EXPECT_FALSE(walk.deferClaim());
  b.in(3, 500);
  EXPECT_TRUE(walk.deferClaim());
  EXPECT_EQ(b.take(walk), 3);
  EXPECT_EQ(b.look(walk), -1);
}

// Flows with a backlog, two of which want only every second opening: those get nearly what the
// others do (they miss rounds that end while they wait), and alike flows get the same within what
// is in hand.
TEST(RoundPass, SharesStayFair) {
  RoundBench b;
  Random random(3);
  for (int i = 0; i < 3000; ++i) {
    for (int n = 1; n <= 5; ++n) b.in(n, 100 + random.below(1400));
  }
  std::map<int, double> sent;
  for (int i = 0; i < 5000; ++i) {
    DrrCursor walk(b.round);
    while (i % 2 && b.look(walk) <= 2) ASSERT_TRUE(walk.pass(b.kNow));
    int n = b.look(walk);
    ASSERT_GT(n, 0);
    sent[n] += static_cast<double>(walk.take().size());
  }
  EXPECT_NEAR(sent[4], sent[3], 2 * DrrScheduler::kQuantum);
  EXPECT_NEAR(sent[5], sent[3], 2 * DrrScheduler::kQuantum);
  EXPECT_NEAR(sent[2], sent[1], 0.02 * sent[1]);
  EXPECT_GE(sent[1], 0.85 * sent[3]);
}

}  // namespace
}  // namespace braid::drr_pass_test
