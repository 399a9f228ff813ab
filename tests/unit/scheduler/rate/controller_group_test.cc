#include "scheduler/rate/controller_group.h"

#include <gtest/gtest.h>

namespace braid::controller_group_test {
namespace {

using Member = ControllerGroup::Member;

struct Pair {
  Pair(double w1, Duration rtt1, double w2, Duration rtt2)
      : first{.window = w1, .srtt = rtt1, .usable = true},
        second{.window = w2, .srtt = rtt2, .usable = true} {
    group.join(first);
    group.join(second);
  }
  ControllerGroup group;
  Member first, second;
};

TEST(ControllerGroup, TotalWindow) {
  Pair p(10000, 100ms, 5000, 50ms);
  EXPECT_EQ(p.group.totalWindow(), 15000);
  p.second.usable = false;
  EXPECT_EQ(p.group.totalWindow(), 10000);
  p.group.leave(p.first);
  EXPECT_EQ(p.group.totalWindow(), 0);
}

TEST(ControllerGroup, AlphaOfRfc6356) {
  // w/rtt^2: 1e6 and 2e6; w/rtt: 1e5 each. 15000 * 2e6 / (2e5)^2
  EXPECT_DOUBLE_EQ(Pair(10000, 100ms, 5000, 50ms).group.alpha(), 0.75);
  // 2e6 and 2e7; 2e5 each. 22000 * 2e7 / (4e5)^2
  EXPECT_DOUBLE_EQ(Pair(20000, 100ms, 2000, 10ms).group.alpha(), 2.75);
}

TEST(ControllerGroup, AlphaWithEqualRttsIsTheLargestShare) {
  EXPECT_DOUBLE_EQ(Pair(6000, 20ms, 2000, 20ms).group.alpha(),
                   0.75);  // AMP section 4.2: w_max / w_total
}

TEST(ControllerGroup, AlphaWithoutAnRttIsOne) {
  EXPECT_EQ(Pair(6000, 0ms, 2000, 0ms).group.alpha(), 1);
}

TEST(ControllerGroup, DeltaOfXmp) {
  Pair p(10000, 100ms, 5000, 50ms);
  EXPECT_DOUBLE_EQ(p.group.delta(p.first), 1.0);   // 100/50 * 1e5 / 2e5
  EXPECT_DOUBLE_EQ(p.group.delta(p.second), 0.5);  // 50/50 * 1e5 / 2e5
}

TEST(ControllerGroup, DeltaWithEqualRttsIsTheShare) {
  Pair p(6000, 20ms, 2000, 20ms);
  EXPECT_DOUBLE_EQ(p.group.delta(p.first), 0.75);
  EXPECT_DOUBLE_EQ(p.group.delta(p.second), 0.25);
}

TEST(ControllerGroup, DeltaWithoutAnRttIsOne) {
  Pair p(6000, 0ms, 2000, 0ms);
  EXPECT_EQ(p.group.delta(p.first), 1);
}

TEST(ControllerGroup, SuppressedMembersTakeNoPart) {
  Pair p(2000, 10ms, 2000, 10ms);
  p.first.atMinimum = p.second.atMinimum = true;
  p.group.onRound(true, 1, 8, Time{} + 1s);
  EXPECT_TRUE(p.group.suppressing());
  EXPECT_EQ(p.second.suppressedAt, Time{} + 1s);
  EXPECT_EQ(p.group.totalWindow(), 2000);
  EXPECT_EQ(p.group.alpha(), 1);
  EXPECT_EQ(p.group.delta(p.first), 1);
}

TEST(ControllerGroup, LeavingEndsTheSuppressionOfTheInitialSubflow) {
  Pair p(2000, 10ms, 2000, 10ms);
  p.first.atMinimum = p.second.atMinimum = true;
  p.group.onRound(true, 1, 8, Time{} + 1s);
  p.group.leave(p.first);
  EXPECT_FALSE(p.group.suppressing());
  EXPECT_EQ(p.second.suppressedAt, kNever);
}

// ---- shared bottlenecks

/// 100 intervals of delays that swing by `by` ms, two intervals up, two down, from the interval
/// `from` on.
Time swing(Member& m, int from, double by) {
  Time now = Time{} + from * DelaySeries::kInterval;
  for (int i = from; i < from + 100; ++i, now += DelaySeries::kInterval) {
    Duration rtt = 100ms + fromSeconds((i % 4 < 2 ? by : -by) / 1000);
    for (int k = 0; k < 5; ++k) m.user.delays.onSample(rtt, now + k * 1ms);
  }
  return now;
}

TEST(ControllerGroup, AloneWithoutDelays) {
  Pair p(6000, 20ms, 2000, 20ms);
  EXPECT_EQ(p.group.sharing(p.first, Time{} + 1s), 1u);
  EXPECT_EQ(p.group.sharing(p.first, Time{} + 100s), 1u);
}

TEST(ControllerGroup, MembersThatShareABottleneck) {
  Pair p(6000, 20ms, 2000, 20ms);
  Member third{.window = 5000, .srtt = 20ms, .usable = true};
  p.group.join(third);
  swing(p.first, 0, 10);
  swing(p.second, 0, 10);
  Time now = swing(third, 0, -10);
  EXPECT_EQ(p.group.sharing(p.first, now), 2u);
  EXPECT_EQ(p.group.sharing(p.second, now), 2u);
  EXPECT_EQ(p.group.sharing(third, now), 1u);
}

TEST(ControllerGroup, WhoTakesNoPartSharesNothing) {
  Pair p(6000, 20ms, 2000, 20ms);
  swing(p.first, 0, 10);
  Time now = swing(p.second, 0, 10);
  ASSERT_EQ(p.group.sharing(p.first, now), 2u);
  p.group.setUsable(p.second, false, now);
  EXPECT_EQ(p.group.sharing(p.second, now), 1u);
  EXPECT_EQ(p.group.sharing(p.first, now + DelaySeries::kInterval), 1u);
  EXPECT_EQ(p.second.user.bottleneck, 0u);  // the common history is discarded
}

TEST(ControllerGroup, SharingIsDecidedOncePerInterval) {
  Pair p(6000, 20ms, 2000, 20ms);
  swing(p.first, 0, 10);
  Time now = swing(p.second, 0, 10);
  ASSERT_EQ(p.group.sharing(p.first, now), 2u);
  p.second.user.delays.reset();
  EXPECT_EQ(p.group.sharing(p.first, now + DelaySeries::kInterval - 1ns), 2u);
  EXPECT_EQ(p.group.sharing(p.first, now + DelaySeries::kInterval), 1u);
}

}  // namespace
}  // namespace braid::controller_group_test
