#include "scheduler/path/earliest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"

namespace braid::earliest_test {
namespace {

constexpr Time kNow = Time{} + 1s;
/// 50 Mbit/s: 6250 bytes in a millisecond.
constexpr double kRate = 6.25e6;

PathView open(Duration srtt, double rate = kRate) {
  return {.srtt = srtt, .rate = rate, .open = true, .ahead = true, .usable = true};
}

PathView closed(Duration srtt, Duration wait, double rate = kRate) {
  return {.srtt = srtt, .rate = rate, .wait = wait, .usable = true};
}

struct Bench {
  Earliest policy;
  FlowPatience patience;
  bool small = false;

  std::optional<size_t> pick(const std::vector<PathView>& paths, uint64_t drain, Time now = kNow) {
    return policy.pick(paths, {.bytes = 1500, .drain = drain, .queued = drain, .small = small},
                       patience, now);
  }
};

TEST(Earliest, FastestOpenIsTaken) {
  Bench b;
  EXPECT_EQ(b.pick({open(60ms), open(20ms), open(40ms)}, 1'000'000), 1u);
  EXPECT_EQ(b.pick({open(20ms), open(20ms)}, 1500), 0u) << "the first of equals";
  EXPECT_EQ(b.patience.since, kNever);
}

TEST(Earliest, NothingOpen) {
  Bench b;
  EXPECT_EQ(b.pick({closed(20ms, 1ms)}, 1500), std::nullopt);
  EXPECT_EQ(b.pick({}, 1500), std::nullopt);
  EXPECT_EQ(b.patience.since, kNever) << "there is no choice that it could wait out";
}

TEST(Earliest, WaitsForWhatTheFastPathBringsInTime) {
  Bench b;
  std::vector<PathView> paths{closed(20ms, 240us), open(60ms)};
  // The slow path takes 30 ms, the fast one 0.24 + 10: 19.76 ms of 6250 bytes are 123,500.
  EXPECT_EQ(b.pick(paths, 123'501), 1u);
  EXPECT_EQ(b.pick(paths, 123'500), std::nullopt);
}

TEST(Earliest, ALongWaitForTheFastPathLeavesLessTime) {
  Bench b;
  // 30 - 10 - 15 = 5 ms: 31,250 bytes. And none where the wait is 20 ms.
  EXPECT_EQ(b.pick({closed(20ms, 15ms), open(60ms)}, 31'251), 1u);
  EXPECT_EQ(b.pick({closed(20ms, 15ms), open(60ms)}, 31'250), std::nullopt);
  Bench other;
  EXPECT_EQ(other.pick({closed(20ms, 20ms), open(60ms)}, 100), 1u);
}

TEST(Earliest, FasterPathsAddUp) {
  Bench b;
  // 100,000 bytes by the first in 30 - 10 - 4 = 16 ms; by the second, 30 - 20 - 2 = 8 ms, 10,000.
  std::vector<PathView> paths{closed(20ms, 4ms), closed(40ms, 2ms, 1.25e6), open(60ms)};
  EXPECT_EQ(b.pick(paths, 110'001), 2u);
  EXPECT_EQ(b.pick(paths, 110'000), std::nullopt);
}

TEST(Earliest, SlowerOnesAndUnusableOnesDoNot) {
  Bench b;
  std::vector<PathView> paths{closed(20ms, 0ms), open(60ms), closed(61ms, 0ms), closed(10ms, 0ms)};
  paths[3].usable = false;
  // 20 ms of the first: 125,000 bytes.
  EXPECT_EQ(b.pick(paths, 125'001), 1u);
  paths[0].usable = false;
  EXPECT_EQ(b.pick(paths, 1), 1u);
}

TEST(Earliest, AlikePathsAreNotWaitedFor) {
  Bench b;
  // Half a millisecond of difference in RTT is 0.25 ms: 1562 bytes.
  EXPECT_EQ(b.pick({closed(20ms, 0ms), open(20500us)}, 1563), 1u);
}

TEST(Earliest, WaitingUsesThePatienceUp) {
  Bench b;
  std::vector<PathView> paths{closed(20ms, 0ms), open(60ms)};
  ASSERT_EQ(b.pick(paths, 62'500), std::nullopt);
  EXPECT_EQ(b.patience.since, kNow);
  // Ten milliseconds later 1.25 * 30 - 10 - 10 ms are left.
  EXPECT_EQ(b.pick(paths, 109'375, kNow + 10ms), std::nullopt);
  EXPECT_EQ(b.patience.since, kNow);
  EXPECT_FALSE(b.patience.bulk);
  // A queue that stays too long ends the wait. Before 30 - 10 ms it may be a burst that has just
  // arrived.
  EXPECT_EQ(b.pick(paths, 109'376, kNow + 10ms), 1u);
  EXPECT_FALSE(b.patience.bulk);
  EXPECT_EQ(b.pick(paths, 62'500, kNow + 10ms), std::nullopt);
  EXPECT_EQ(b.patience.since, kNow + 10ms);
  EXPECT_EQ(b.pick(paths, 109'376, kNow + 20ms), 1u);
  EXPECT_TRUE(b.patience.bulk);
}

TEST(Earliest, WhatWaitedForTheFastPathAndGotItIsNotBulk) {
  Bench b;
  ASSERT_EQ(b.pick({closed(20ms, 1ms), open(60ms)}, 3000), std::nullopt);
  EXPECT_EQ(b.pick({open(20ms), open(60ms)}, 3000, kNow + 1ms), 0u);
  EXPECT_FALSE(b.patience.bulk);
  EXPECT_EQ(b.pick({closed(20ms, 1ms), open(60ms)}, 1500, kNow + 1ms), std::nullopt);
  // Nor does it wait for a slower path when that is the only open one and none is faster.
  EXPECT_EQ(b.pick({open(60ms)}, 1500, kNow + 100ms), 0u);
  EXPECT_FALSE(b.patience.bulk);
}

TEST(Earliest, ALongQueueDoesNotUsePatienceUp) {
  Bench b;
  std::vector<PathView> paths{closed(20ms, 0ms), open(60ms)};
  EXPECT_EQ(b.pick(paths, 300'000), 1u);
  EXPECT_FALSE(b.patience.bulk);
  // The end of the queue waits, so that both paths finish at the same time.
  EXPECT_EQ(b.pick(paths, 125'000, kNow + 20ms), std::nullopt);
}

TEST(Earliest, BulkTakesWhatIsOpen) {
  Bench b;
  b.patience.bulk = true;
  EXPECT_EQ(b.pick({closed(20ms, 0ms), open(60ms)}, 1500), 1u);
  EXPECT_EQ(b.pick({open(20ms), open(60ms)}, 1500), 0u);
}

TEST(Earliest, SmallFlowsGoAhead) {
  Bench b;
  std::vector<PathView> paths{closed(20ms, 240us), open(60ms)};
  paths[0].ahead = true;
  EXPECT_EQ(b.pick(paths, 200), std::nullopt);
  b.small = true;
  EXPECT_EQ(b.pick(paths, 200), 0u);
  paths[0].ahead = false;
  EXPECT_EQ(b.pick(paths, 200), std::nullopt) << "not on the slow path";
}

TEST(Earliest, SaysWhenToAskAgain) {
  Bench b;
  // 19.76 ms bring 123,500 bytes, 62,250 more than wait: 9.96 ms of 6250.
  ASSERT_EQ(b.pick({closed(20ms, 240us), open(60ms)}, 61'250), std::nullopt);
  EXPECT_NEAR(toMilliseconds(b.patience.until - kNow), 9.96, 0.001);
  ASSERT_EQ(b.pick({closed(20ms, 0ms), open(60ms)}, 125'000), std::nullopt);
  EXPECT_EQ(b.patience.until, kNow + 100us) << "never at once";
}

// Whatever the state of the paths, a flow with a queue that does not shrink waits at most for 1.25
// times the delay of the slowest open path minus that of the fastest one. From then on it uses
// every open path.
TEST(Earliest, WaitingIsBoundedAndBulkConservesWork) {
  Random random(7);
  for (int run = 0; run < 2000; ++run) {
    Bench b;
    std::vector<PathView> paths(2 + random.below(4));
    auto draw = [&] {
      for (PathView& p : paths) {
        Duration srtt = std::chrono::microseconds(1000 + random.below(200'000));
        double rate = 1e4 + static_cast<double>(random.below(100'000'000));
        p = random.below(2) ? open(srtt, rate)
                            : closed(srtt, std::chrono::microseconds(random.below(30'000)), rate);
        p.usable = p.open || random.below(4);
      }
      paths[0].open = paths[0].ahead = paths[0].usable = true;
      paths[0].wait = {};
    };
    uint64_t drain = 1500 + random.below(500'000);
    Time now = kNow;
    draw();
    auto bySrtt = [](const PathView& x, const PathView& y) { return x.srtt < y.srtt; };
    auto [fastest, slowest] = std::minmax_element(paths.begin(), paths.end(), bySrtt);
    Duration bound = (slowest->srtt * 5 / 4 - fastest->srtt) / 2 + 100us;
    std::optional<size_t> choice;
    while (!(choice = b.pick(paths, drain, now))) {
      ASSERT_GT(b.patience.until, now);
      now = b.patience.until;
      ASSERT_LE(now - kNow, bound) << run;
    }
    EXPECT_TRUE(paths[*choice].open);
    b.patience.bulk = true;
    for (int i = 0; i < 20; ++i, now += 1ms) {
      draw();
      choice = b.pick(paths, drain, now);
      ASSERT_TRUE(choice);
      EXPECT_TRUE(paths[*choice].open);
    }
  }
}

}  // namespace
}  // namespace braid::earliest_test
