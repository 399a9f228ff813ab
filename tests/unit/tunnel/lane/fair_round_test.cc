// Whose turn it is, whatever the flows' data is: the round against a lane that only counts units.

#include "tunnel/lane/fair_round.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <vector>

#include "tests/unit/tunnel/lane/some_flows.h"

namespace braid::fair_round_test {
namespace {

constexpr Time kNow = Time{} + 1s;
using Order = std::vector<int>;

/// Flows 1, 2, ... whose units all have the same size.
struct CountingLane final : Lane {
  static constexpr size_t kUnit = 500;

  FairRound round;
  std::deque<Flow> flows;
  std::map<const Flow*, int> waiting;  ///< units, those that are ready included
  std::vector<const Flow*> asked;

  bool prepare(Flow& flow, Time) override {
    asked.push_back(&flow);
    return waiting[&flow] > 0;
  }
  Flow& flow(size_t n) {
    while (flows.size() < n) flows.emplace_back(*this, static_cast<uint16_t>(flows.size()));
    return flows[n - 1];
  }
  int numberOf(const Flow* of) {
    for (size_t n = 1; n <= flows.size(); ++n) {
      if (&flows[n - 1] == of) return static_cast<int>(n);
    }
    return 0;
  }
  void in(size_t n, int units) {
    waiting[&flow(n)] += units;
    round.onData(flow(n));
  }
  /// What is offered: the flow's number, negative for a turn without data; 0: nothing.
  int look(Round& walk) {
    Offer offer = walk.offer(kNow);
    return offer.isClaim ? -numberOf(offer.flow) : numberOf(offer.flow);
  }
  int take(Round& walk) {
    int n = look(walk);
    if (n < 0) walk.endClaim(0, false);
    if (n <= 0) return n;
    --waiting[&flow(static_cast<size_t>(n))];
    walk.take(kUnit);
    return n;
  }
  /// Each in a walk of its own.
  Order serve(size_t count) {
    Order order;
    for (size_t i = 0; i < count; ++i) {
      Round walk(round);
      order.push_back(take(walk));
    }
    return order;
  }
};

TEST(FairRound, AnEmptyRoundOffersNothing) {
  CountingLane lane;
  Round walk(lane.round);
  EXPECT_FALSE(walk.offer(kNow));
  EXPECT_FALSE(walk.pass(kNow));
  EXPECT_EQ(lane.round.seated(), 0u);
}

TEST(FairRound, TakesTurnsByBytes) {
  CountingLane lane;
  lane.in(1, 20);
  lane.in(2, 20);
  // 1514 bytes are three units and one that is paid back: then only three in the next round.
  EXPECT_EQ(lane.serve(14), (Order{1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2}));
}

TEST(FairRound, AnOfferStaysUntilItIsTaken) {
  CountingLane lane;
  lane.in(1, 2);
  Round walk(lane.round);
  EXPECT_EQ(lane.look(walk), 1);
  lane.in(2, 1);
  EXPECT_EQ(lane.look(walk), 1);
  EXPECT_EQ(lane.asked.size(), 1u) << "the unit is readied once";
  Round other(lane.round);
  EXPECT_EQ(lane.look(other), 1) << "also in another walk";
  EXPECT_EQ(lane.take(other), 1);
  EXPECT_EQ(lane.asked.size(), 1u);
}

TEST(FairRound, AWalkGoesOnBehindWhatWasPassed) {
  CountingLane lane;
  for (size_t n : {1, 2, 3}) lane.in(n, 2);
  Round walk(lane.round);
  ASSERT_EQ(lane.look(walk), 1);
  EXPECT_TRUE(walk.pass(kNow));
  EXPECT_EQ(lane.take(walk), 2);
  EXPECT_EQ(lane.take(walk), 2) << "the same walk";
  EXPECT_EQ(lane.take(walk), 3);
  EXPECT_EQ(lane.round.held(), 1u);
  EXPECT_EQ(lane.serve(3), (Order{1, 1, 3})) << "a new walk begins with those passed";
  EXPECT_EQ(lane.round.held(), 0u);
}

TEST(FairRound, AFlowLosesItsSeatWhenItHasNothing) {
  CountingLane lane;
  lane.in(1, 1);
  EXPECT_TRUE(lane.flow(1).isSeated());
  EXPECT_TRUE(lane.flow(1).isSparse());
  EXPECT_EQ(lane.serve(2), (Order{1, 0}));
  EXPECT_FALSE(lane.flow(1).isSeated());
  EXPECT_EQ(lane.round.seated(), 0u);
}

TEST(FairRound, AClaimIsATurnWithoutData) {
  CountingLane lane;
  lane.in(1, 1);
  lane.flow(2);
  lane.round.claim(lane.flow(2));
  EXPECT_EQ(lane.round.claims(), 1u);
  Round walk(lane.round);
  EXPECT_EQ(lane.take(walk), 1);
  EXPECT_EQ(lane.look(walk), -2);
  EXPECT_FALSE(walk.pass(kNow)) << "there is no unit that could wait";
  walk.endClaim(100, true);
  EXPECT_EQ(lane.look(walk), -2) << "it wanted another one";
  walk.endClaim(100, false);
  EXPECT_EQ(lane.look(walk), 0);
  EXPECT_EQ(lane.round.claims(), 0u);
}

TEST(FairRound, NewDataGoesBeforeATurnWithoutAny) {
  CountingLane lane;
  lane.round.claim(lane.flow(1));
  Round walk(lane.round);
  ASSERT_EQ(lane.look(walk), -1);
  lane.in(1, 1);
  EXPECT_EQ(lane.take(walk), 1);
  EXPECT_EQ(lane.look(walk), -1);
}

TEST(FairRound, VisitsEveryFlowThatHasASeat) {
  CountingLane lane;
  for (size_t n : {1, 2, 3}) lane.in(n, 8);
  lane.serve(4);  // flow 1 is old now
  Round walk(lane.round);
  walk.pass(kNow);  // flow 2 is held
  Order seen;
  lane.round.forEachSeated([&](Flow& flow) { seen.push_back(lane.numberOf(&flow)); });
  EXPECT_EQ(seen, (Order{3, 1, 2})) << "new ones, old ones, held ones";
  EXPECT_EQ(lane.round.seated(), 3u);
}

}  // namespace
}  // namespace braid::fair_round_test
