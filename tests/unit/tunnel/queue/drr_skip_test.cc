// Flows that are skipped: their data unit waits for a better path, and other flows are served
// first.

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"
#include "tests/unit/tunnel/queue/drr_bench.h"

namespace braid::drr_skip_test {
namespace {

using Order = RoundBench::Order;

TEST(DrrSkip, TheNextFlowIsOffered) {
  RoundBench b;
  for (int n : {1, 2, 3}) b.in(n, 1000, 2);
  DrrCursor walk(b.round);
  ASSERT_EQ(b.look(walk), 1);
  EXPECT_TRUE(walk.skip(b.kNow));
  EXPECT_EQ(b.look(walk), 2);
  EXPECT_TRUE(walk.skip(b.kNow));
  EXPECT_EQ(b.round.skipped(), 2u);
  EXPECT_EQ(b.take(walk), 3);
  EXPECT_EQ(b.take(walk), 3) << "the same walk";
  EXPECT_EQ(b.look(walk), 0);
  EXPECT_FALSE(walk.skip(b.kNow));
  EXPECT_EQ(b.round.bytes(), 4000u);
}

TEST(DrrSkip, ANewWalkOffersThemAgainInTheirOrder) {
  RoundBench b;
  for (int n : {1, 2, 3}) b.in(n, 1000);
  DrrCursor first(b.round);
  first.skip(b.kNow);
  first.skip(b.kNow);
  DrrCursor second(b.round);
  EXPECT_EQ(b.look(second), 1);
  second.skip(b.kNow);
  EXPECT_EQ(b.look(second), 2);
  EXPECT_EQ(b.serve(4), (Order{1, 2, 3, 0}));
  EXPECT_EQ(b.round.skipped(), 0u);
}

TEST(DrrSkip, WhatIsTakenFromTheMiddleLeavesTheOthers) {
  RoundBench b;
  for (int n : {1, 2, 3}) b.in(n, 1000);
  DrrCursor first(b.round);
  first.skip(b.kNow);
  first.skip(b.kNow);
  DrrCursor second(b.round);
  second.skip(b.kNow);
  EXPECT_EQ(b.take(second), 2);
  EXPECT_EQ(b.look(second), 3) << "behind it";
  EXPECT_EQ(b.serve(2), (Order{1, 3}));
}

TEST(DrrSkip, AFlowGoesOnWithItsTurn) {
  RoundBench b;
  b.in(1, 500, 4);
  b.in(2, 500, 4);
  DrrCursor walk(b.round);
  walk.skip(b.kNow);
  ASSERT_EQ(b.take(walk), 2);
  // Flow 1 has 1014 left: it sends two more units, and one that is paid back later. Then flow 2,
  // which has the same left of its turn.
  EXPECT_EQ(b.serve(7), (Order{1, 1, 1, 1, 2, 2, 2}));
}

TEST(DrrSkip, TheCurrentFlowStaysFirst) {
  RoundBench b;
  b.in(1, 1000, 3);
  b.in(2, 1000, 3);
  DrrCursor first(b.round);
  first.skip(b.kNow);
  ASSERT_EQ(b.look(first), 2);
  DrrCursor second(b.round);
  EXPECT_EQ(b.take(second), 1);
  ASSERT_EQ(b.look(second), 2);
  // Now flow 2 is skipped, and flow 1 continues with the 514 it had left.
  second.skip(b.kNow);
  EXPECT_EQ(b.take(second), 1);
  EXPECT_EQ(b.take(second), 1);
  EXPECT_EQ(b.serve(4), (Order{2, 2, 2, 0}));
}

TEST(DrrSkip, WhatComesMeanwhileWaitsToo) {
  RoundBench b;
  b.in(1, 1000);
  DrrCursor walk(b.round);
  walk.skip(b.kNow);
  b.in(1, 700);
  EXPECT_EQ(b.look(walk), 0);
  EXPECT_EQ(b.serve(3), (Order{1, 1, 0}));
}

TEST(DrrSkip, NoMoreThanSome) {
  RoundBench b;
  constexpr int kOneMore = DrrScheduler::kMaxSkipped + 1;
  for (int n = 1; n <= kOneMore; ++n) b.in(n, 1000);
  DrrCursor walk(b.round);
  for (size_t i = 0; i < DrrScheduler::kMaxSkipped; ++i) EXPECT_TRUE(walk.skip(b.kNow));
  EXPECT_FALSE(walk.skip(b.kNow));
  EXPECT_EQ(b.look(walk), kOneMore) << "nothing has changed";
  EXPECT_EQ(b.round.skipped(), DrrScheduler::kMaxSkipped);
}

TEST(DrrSkip, ATurnWithoutDataWaitsForThoseThatWereSkipped) {
  RoundBench b;
  b.in(1, 1000);
  ASSERT_EQ(b.serve(1), Order{1});
  b.in(2, 1000);
  DrrCursor walk(b.round);
  walk.skip(b.kNow);
  b.round.requestTurn(b.flow(1));
  EXPECT_EQ(b.look(walk), -1);
  EXPECT_EQ(b.serve(2), (Order{2, -1}));
}

TEST(DrrSkip, ANewFlowBehindWhatIsOffered) {
  RoundBench b;
  b.in(1, 1000, 4);
  DrrCursor walk(b.round);
  ASSERT_EQ(b.look(walk), 1);
  EXPECT_FALSE(b.round.hasOtherNew(b.flow(1)));
  b.take(walk);
  b.take(walk);
  ASSERT_EQ(b.look(walk), 1);
  EXPECT_FALSE(b.round.hasOtherNew(b.flow(1)));
  b.in(2, 1000);
  EXPECT_TRUE(b.round.hasOtherNew(b.flow(1)));
  walk.skip(b.kNow);
  ASSERT_EQ(b.look(walk), 2);
  EXPECT_FALSE(b.round.hasOtherNew(b.flow(2))) << "it is offered";
  walk.skip(b.kNow);
  EXPECT_FALSE(b.round.hasOtherNew(b.flow(2)));
}

// Protection of a flow that has ended may have no path, while a small flow behind it has one.
TEST(DrrSkip, ADeferredTurnLetsNewFlowsGoFirst) {
  RoundBench b;
  b.round.requestTurn(b.flow(1));
  DrrCursor alone(b.round);
  EXPECT_FALSE(alone.deferTurn()) << "nothing is offered";
  ASSERT_EQ(b.look(alone), -1);
  EXPECT_FALSE(alone.deferTurn()) << "nobody is behind it";
  EXPECT_EQ(b.look(alone), -1);

  b.in(2, 1000);
  b.round.requestTurn(b.flow(3));
  DrrCursor walk(b.round);
  ASSERT_EQ(b.look(walk), -1);
  EXPECT_TRUE(walk.deferTurn());
  EXPECT_EQ(b.look(walk), 2);
  EXPECT_FALSE(walk.deferTurn()) << "data is no turn";
  EXPECT_EQ(b.take(walk), 2);
  EXPECT_EQ(b.serve(4), (Order{-3, -1, 0, 0})) << "no turn is lost, none comes twice";
  EXPECT_EQ(b.round.flows(), 0u);
}

TEST(DrrSkip, ADeferredTurnOfAnOldFlowIsTheNextOfTheOldOnes) {
  RoundBench b;
  b.in(1, 1000, 4);
  b.in(2, 1000, 4);
  b.serve(4);  // both are old
  b.round.requestTurn(b.flow(1));
  b.waiting[1].clear();
  b.round.onDropped(b.flow(1), b.flow(1).waitingBytes());
  DrrCursor walk(b.round);
  while (b.look(walk) != -1) b.take(walk);
  EXPECT_FALSE(walk.deferTurn());
  b.in(3, 500);
  EXPECT_TRUE(walk.deferTurn());
  EXPECT_EQ(b.take(walk), 3);
  EXPECT_EQ(b.look(walk), -1);
}

// Flows with a backlog, two of which want only every second opening: those get nearly what the
// others do (they miss rounds that end while they wait), and alike flows get the same within what
// is in hand.
TEST(DrrSkip, SharesStayFair) {
  RoundBench b;
  Random random(3);
  for (int i = 0; i < 3000; ++i) {
    for (int n = 1; n <= 5; ++n) b.in(n, 100 + random.below(1400));
  }
  std::map<int, double> sent;
  for (int i = 0; i < 5000; ++i) {
    DrrCursor walk(b.round);
    while (i % 2 && b.look(walk) <= 2) ASSERT_TRUE(walk.skip(b.kNow));
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
}  // namespace braid::drr_skip_test
