// The DRR scheduler: which flow has the next turn, independent of what the flows' data is.

#include "tunnel/queue/drr.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/random.h"
#include "tests/unit/tunnel/queue/drr_bench.h"

namespace braid::drr_test {
namespace {

using Order = RoundBench::Order;

TEST(DrrScheduler, AnEmptyRoundOffersNothing) {
  RoundBench b;
  DrrCursor walk(b.round);
  EXPECT_FALSE(walk.peek(b.kNow));
  EXPECT_FALSE(walk.skip(b.kNow));
  EXPECT_EQ(b.round.flows(), 0u);
  EXPECT_FALSE(b.round.hasWork());
}

TEST(DrrScheduler, WhatIsNotOfferedCannotBeTaken) {
  RoundBench b;
  DrrCursor nothing(b.round);
  EXPECT_FALSE(nothing.take());
  nothing.endTurn(500, true);
  EXPECT_EQ(b.round.turnRequests(), 0u);

  b.round.requestTurn(b.flow(1));
  DrrCursor turn(b.round);
  EXPECT_FALSE(turn.take()) << "nobody has looked yet";
  ASSERT_TRUE(turn.peek(b.kNow).isBareTurn());
  EXPECT_FALSE(turn.take()) << "a turn has no unit";
  EXPECT_EQ(RoundBench::look(turn), -1) << "it still goes on";
  EXPECT_EQ(b.serve(2), (Order{-1, 0}));

  b.in(2, 700);
  DrrCursor unit(b.round);
  ASSERT_EQ(RoundBench::look(unit), 2);
  unit.endTurn(500, true);
  EXPECT_EQ(b.round.turnRequests(), 0u) << "a unit is no turn";
  EXPECT_EQ(RoundBench::look(unit), 2);
  EXPECT_EQ(b.round.bytes(), 700u);
  EXPECT_EQ(unit.take().size(), 700u);
  EXPECT_FALSE(unit.take()) << "once";
  EXPECT_EQ(b.round.bytes(), 0u);
  EXPECT_EQ(b.serve(1), Order{0});
}

TEST(DrrScheduler, AnOfferStaysUntilItIsTaken) {
  RoundBench b;
  b.in(1, 700);
  DrrCursor walk(b.round);
  const Packet* unit = walk.peek(b.kNow).unit;
  ASSERT_NE(unit, nullptr);
  EXPECT_EQ(unit->size(), 700u);
  b.in(2, 800);
  EXPECT_EQ(walk.peek(b.kNow).unit, unit);
  DrrCursor other(b.round);
  EXPECT_EQ(other.peek(b.kNow).unit, unit) << "also in another walk";
  EXPECT_EQ(b.asked, Order{1}) << "the unit is readied once";
  EXPECT_EQ(b.round.bytes(), 1500u) << "it still waits";
  const uint8_t* bytes = unit->data();
  EXPECT_EQ(other.take().data(), bytes);
  EXPECT_EQ(b.round.bytes(), 800u);
  EXPECT_EQ(b.serve(1), Order{2});
}

TEST(DrrScheduler, KnowsWhatWaits) {
  RoundBench b;
  b.in(1, 500, 3);
  b.in(2, 400);
  EXPECT_EQ(b.round.bytes(), 1900u);
  EXPECT_EQ(b.flow(1).waitingBytes(), 1500u);
  b.waiting[1].pop_back();
  b.round.onDropped(b.flow(1), 500);
  EXPECT_EQ(b.round.bytes(), 1400u);
  EXPECT_EQ(b.flow(1).waitingBytes(), 1000u);
  b.serve(2);
  EXPECT_EQ(b.flow(1).waitingBytes(), 0u);
  EXPECT_TRUE(b.round.hasWork());
  b.serve(1);
  EXPECT_FALSE(b.round.hasWork());
}

TEST(DrrScheduler, AFlowLosesItsSeatWhenItHasNothing) {
  RoundBench b;
  b.in(1, 500);
  EXPECT_TRUE(b.flow(1).isScheduled());
  EXPECT_TRUE(b.flow(1).isSparse());
  EXPECT_EQ(b.serve(2), (Order{1, 0}));
  EXPECT_FALSE(b.flow(1).isScheduled());
  EXPECT_EQ(b.round.flows(), 0u);
}

TEST(DrrScheduler, DrainByHand) {
  RoundBench b;
  b.in(1, 1000, 10);
  b.in(2, 1000, 5);
  b.in(3, 1000);
  // All are new.
  EXPECT_EQ(b.round.bytesUntilDrained(b.flow(2)), 5000u) << "sparse ones go first";
  // Serves two units of flow 1, two of flow 2, the one of flow 3 (whose entry stays, empty, for one
  // round), and one of flow 1.
  b.serve(6);
  // 10 units are left. Flow 2 has three of them: with two other flows that is at most 9.
  ASSERT_EQ(b.flow(2).waitingBytes(), 3000u);
  EXPECT_EQ(b.round.bytesUntilDrained(b.flow(2)), 3u * 3000u);
  EXPECT_EQ(b.round.bytesUntilDrained(b.flow(1)), b.round.bytes()) << "no more than there is";
}

// ---- RFC 8290 section 4.2: deficit round robin, new and old flows

TEST(DrrScheduler, QuantumByHand) {
  RoundBench b;
  b.in(1, 1000, 8);
  b.in(2, 500, 8);
  // The deficits: both flows are new and begin with 1514. Flow 1: 514, -486. Flow 2: 1014, 514, 14,
  // -486. Then + 1514 each, which gives 1028. Flow 1: 28, -972. Flow 2: 528, 28, -472. Then + 1514:
  // flow 1 has 542, -458; flow 2 has 1042, 542.
  EXPECT_EQ(b.serve(13), (Order{1, 1, 2, 2, 2, 2, 1, 1, 2, 2, 2, 1, 2}));
}

TEST(DrrScheduler, NewFlowGoesBeforeOldOnes) {
  RoundBench b;
  b.in(1, 1000, 10);
  b.in(2, 1000, 10);
  b.serve(8);
  b.in(3, 1000);
  Order next = b.serve(2);
  EXPECT_EQ(next[0], 3);
  EXPECT_NE(next[1], 3);
}

TEST(DrrScheduler, NewFlowThatUsesItsQuantumBecomesOld) {
  RoundBench b;
  b.in(1, 1000, 10);
  b.serve(4);  // flow 1 is old, its credit used up
  b.in(2, 1000, 10);
  // Flow 2 is new: 1514, 514, -486, + 1514 = 1028 and last of the old. Flow 1: -972 + 1514 = 542,
  // behind flow 2. Flow 2: 28, -972, + 1514 = 542, behind flow 1: -458, + 1514, behind flow 2.
  EXPECT_EQ(b.serve(6), (Order{2, 2, 2, 2, 1, 2}));
}

TEST(DrrScheduler, EmptiedNewFlowIsOldBeforeItLosesItsSeat) {
  RoundBench b;
  b.in(1, 300, 20);
  ASSERT_EQ(b.serve(2), (Order{1, 1}));  // 914 left
  b.in(2, 100);
  // The two flows are new. Flow 1 continues: deficit 614, 314, 14, -286, then + 1514 and it is old.
  // Flow 2 is served, then found empty, and so becomes old, too.
  EXPECT_EQ(b.serve(5), (Order{1, 1, 1, 1, 2}));
  EXPECT_EQ(b.serve(1), Order{1});  // 1228 - 300 left
  b.in(2, 100);
  // As a new flow, flow 2 would be served before flow 1 each time. Instead it waits until flow 1
  // has used its credit.
  EXPECT_EQ(b.serve(5), (Order{1, 1, 1, 1, 2}));
}

TEST(DrrScheduler, FlowThatWasGoneIsNewAgain) {
  RoundBench b;
  b.in(1, 1500);
  EXPECT_EQ(b.serve(2), (Order{1, 0}));
  b.in(2, 1000, 10);
  b.serve(4);
  b.in(1, 1500);
  EXPECT_EQ(b.serve(1), Order{1});
}

TEST(DrrScheduler, UnitsAboveTheQuantumAreServed) {
  RoundBench b;
  b.in(1, 2900, 4);
  b.in(2, 1450, 8);
  Order order = b.serve(6);
  EXPECT_EQ(2 * std::count(order.begin(), order.end(), 1),
            std::count(order.begin(), order.end(), 2));
}

TEST(DrrSchedulerProperty, BackloggedFlowsGetEqualShares) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    RoundBench b;
    int flows = static_cast<int>(2 + random.below(10));
    for (int n = 1; n <= flows; ++n) {
      size_t top = 60 + random.below(1454);
      for (size_t queued = 0; queued < 200'000;) {
        size_t size = 40 + random.below(top - 40);
        b.in(n, size);
        queued += size;
      }
    }
    std::map<int, int64_t> served;
    for (int step = 0;; ++step) {
      DrrCursor walk(b.round);
      int n = b.look(walk);
      ASSERT_GT(n, 0);
      served[n] += static_cast<int64_t>(walk.take().size());
      if (served[n] > 150'000) break;
      if (step < 20 * flows) continue;
      auto [low, high] =
          std::minmax_element(served.begin(), served.end(),
                              [](const auto& x, const auto& y) { return x.second < y.second; });
      ASSERT_EQ(served.size(), static_cast<size_t>(flows));
      ASSERT_LE(high->second - low->second, DrrScheduler::kQuantum + 1514);
    }
  }
}

TEST(DrrSchedulerProperty, SparseFlowNeverWaitsForMoreThanOneUnit) {
  RoundBench b;
  for (int n : {1, 2, 3, 4}) b.in(n, 1400, 100);
  b.serve(8);
  for (int i = 0; i < 40; ++i) {
    b.in(9, 200);
    ASSERT_EQ(b.serve(1), Order{9}) << i;
    // Four old flows have their turns meanwhile.
    for (int n : b.serve(8)) ASSERT_NE(n, 9);
  }
}

TEST(DrrSchedulerProperty, AFloodOfNewFlowsLeavesOldOnesAShare) {
  for (size_t size : {60u, 500u, 1400u}) {
    SCOPED_TRACE(testing::Message() << "new flows of " << size << " bytes");
    RoundBench b;
    b.in(1, 1000, 100);
    b.serve(8);  // it is old
    int64_t ahead = 0;
    b.in(2, size);
    for (int n = 3, served = 0; served < 4; ++n) {
      b.in(n, size);  // adds a flow for each unit that is sent, so new flows always wait
      if (b.serve(1) == Order{1}) {
        ++served;
        ahead = 0;
      } else {
        ahead += static_cast<int64_t>(size);
        ASSERT_LT(ahead, DrrScheduler::kMaxSparseRun + 1514);
      }
    }
  }
}

// Sparse flows have used their whole priority over the old flow, so it has the next turn. It waits,
// and the sparse flows continue.
TEST(DrrScheduler, AnOldFlowThatIsPassedDoesNotStopNewOnes) {
  RoundBench b;
  for (int n : {1, 2}) b.in(n, 1000, 100);
  b.serve(8);  // both are old
  for (int n = 3; n < 3 + 20; ++n) b.in(n, 1000);
  Order ahead = b.serve(13);  // 13,000 bytes are more than 8 quanta
  ASSERT_EQ(std::count_if(ahead.begin(), ahead.end(), [](int n) { return n > 2; }), 13);
  DrrCursor walk(b.round);
  ASSERT_LE(RoundBench::look(walk), 2);
  ASSERT_TRUE(walk.skip(b.kNow));
  EXPECT_GT(RoundBench::look(walk), 2) << "not the other old one";
}

TEST(DrrScheduler, TheTurnOfAnOldFlowThatWaitsDoesNotStopNewOnes) {
  RoundBench b;
  b.in(1, 1000, 2);
  b.serve(2);
  b.in(2, 1000);
  b.serve(1);  // flow 1 is found empty, and keeps its entry as an old flow
  b.round.requestTurn(b.flow(1));
  for (int n = 3; n < 3 + 20; ++n) b.in(n, 1000);
  for (int n = 0, turns = 0; n < 20; ++n) {
    DrrCursor walk(b.round);
    while (RoundBench::look(walk) < 0) {
      ASSERT_LT(++turns, 4);
      ASSERT_TRUE(walk.deferTurn());
    }
    ASSERT_GT(RoundBench::look(walk), 2);
    ASSERT_EQ(b.round.turnRequests(), 1u);
    walk.take();
    if (n == 19) {
      EXPECT_GT(turns, 0) << "its turn came";
    }
  }
}

// ---- turns without data

TEST(DrrScheduler, NobodyHasATurnWithoutAClaim) {
  RoundBench b;
  b.in(1, 1000);
  EXPECT_EQ(b.serve(2), (Order{1, 0}));
  EXPECT_EQ(b.round.turnRequests(), 0u);
}

TEST(DrrScheduler, AClaimIsATurnInTheRound) {
  RoundBench b;
  b.in(1, 1400, 3);
  b.in(2, 1400);
  ASSERT_EQ(b.serve(3), (Order{1, 1, 2}));  // flow 1 has 114 left, continues, and then is old
  b.round.requestTurn(b.flow(2));
  EXPECT_EQ(b.round.turnRequests(), 1u);
  EXPECT_EQ(b.serve(3), (Order{-2, 1, 0})) << "flow 2 has 114 bytes of credit left";
  EXPECT_EQ(b.round.turnRequests(), 0u);
}

TEST(DrrScheduler, ATurnCostsItsBytes) {
  RoundBench b;
  b.in(1, 1514, 20);
  b.in(2, 1514);
  ASSERT_EQ(b.serve(2), (Order{1, 2}));
  b.round.requestTurn(b.flow(2));
  // The two flows have used their quantum. From now on each has one unit, or one turn of 1514
  // bytes, per round.
  EXPECT_EQ(b.serve(6, 1514, true), (Order{1, -2, 1, -2, 1, -2}));
  // A turn of twice the quantum is paid back in the next round.
  ASSERT_EQ(b.serve(1), Order{1});
  ASSERT_EQ(b.serve(1, 2 * 1514, true), Order{-2});
  EXPECT_EQ(b.serve(5, 1514, true), (Order{1, 1, -2, 1, -2}));
}

TEST(DrrScheduler, ATurnStaysUntilItEnds) {
  RoundBench b;
  b.round.requestTurn(b.flow(1));
  DrrCursor walk(b.round);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(b.look(walk), -1);
  b.in(2, 1000);
  EXPECT_EQ(b.look(walk), -1);
  EXPECT_FALSE(walk.skip(b.kNow)) << "there is no unit that could wait";
  walk.endTurn(100, true);
  EXPECT_EQ(b.look(walk), -1) << "it wanted another one, and has credit left";
  walk.endTurn(0, false);
  EXPECT_EQ(b.look(walk), 2);
}

TEST(DrrScheduler, ATurnThatIsNotWantedAgainIsTheLast) {
  RoundBench b;
  b.round.requestTurn(b.flow(1));
  EXPECT_EQ(b.serve(2, 100, false), (Order{-1, 0}));
  EXPECT_EQ(b.round.turnRequests(), 0u);
}

TEST(DrrScheduler, ClaimsCountFlows) {
  RoundBench b;
  b.round.requestTurn(b.flow(2));
  b.round.requestTurn(b.flow(2));
  EXPECT_EQ(b.round.turnRequests(), 1u);
  b.round.requestTurn(b.flow(1));
  EXPECT_EQ(b.round.turnRequests(), 2u);
  EXPECT_EQ(b.serve(2), (Order{-2, -1}));
  EXPECT_EQ(b.round.turnRequests(), 0u);
}

TEST(DrrScheduler, DataOfTheFlowGoesBeforeItsTurn) {
  RoundBench b;
  b.round.requestTurn(b.flow(1));
  b.in(1, 300, 2);
  EXPECT_EQ(b.serve(3), (Order{1, 1, -1}));
}

TEST(DrrScheduler, DataOfTheFlowEndsTheWaitForItsTurn) {
  RoundBench b;
  b.round.requestTurn(b.flow(1));
  DrrCursor walk(b.round);
  ASSERT_EQ(b.look(walk), -1);
  b.in(1, 300);
  EXPECT_EQ(b.take(walk), 1) << "new data goes first";
  EXPECT_EQ(b.look(walk), -1);
}

TEST(DrrScheduler, AClaimBringsAFlowBack) {
  RoundBench b;
  b.in(1, 1514);
  EXPECT_EQ(b.serve(2), (Order{1, 0})) << "no longer in the round";
  b.in(2, 1000, 10);
  b.serve(4);
  b.round.requestTurn(b.flow(1));
  EXPECT_EQ(b.serve(1), Order{-1}) << "as a new flow";
}

TEST(DrrScheduler, WhoLeavesTakesAllAlong) {
  RoundBench b;
  for (int n : {1, 2, 3}) b.in(n, 500, 3);
  b.round.requestTurn(b.flow(2));
  {
    DrrCursor walk(b.round);
    ASSERT_EQ(RoundBench::look(walk), 1);
    ASSERT_TRUE(walk.skip(RoundBench::kNow));
    ASSERT_EQ(RoundBench::look(walk), 2);
  }
  b.round.remove(b.flow(2));  // the flow that the scheduler has chosen
  EXPECT_EQ(b.round.bytes(), 3000u);
  EXPECT_EQ(b.round.turnRequests(), 0u);
  EXPECT_EQ(b.round.flows(), 2u);
  b.round.remove(b.flow(1));  // one that is held
  EXPECT_EQ(b.round.skipped(), 0u);
  EXPECT_EQ(b.round.bytes(), 1500u);
  EXPECT_EQ(b.serve(4), (RoundBench::Order{3, 3, 3, 0}));
  b.round.remove(b.flow(3));
  b.round.remove(b.flow(3));
  EXPECT_EQ(b.round.flows(), 0u);
  EXPECT_FALSE(b.round.hasWork());
}

}  // namespace
}  // namespace braid::drr_test
