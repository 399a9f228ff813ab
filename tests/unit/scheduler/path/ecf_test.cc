#include "scheduler/path/ecf.h"

#include <gtest/gtest.h>

#include <vector>

namespace braid::ecf_test {
namespace {

PathView path(Duration srtt, Duration rttvar, uint64_t window, bool open, bool usable = true) {
  return {.srtt = srtt, .rttvar = rttvar, .window = window, .open = open, .usable = usable};
}

std::optional<size_t> pick(Ecf& policy, std::span<const PathView> paths, uint64_t bytes,
                           uint64_t queued) {
  FlowPatience patience;
  return policy.pick(paths, {.bytes = bytes, .queued = queued}, patience, Time{});
}

TEST(Ecf, FastestOpenIsTaken) {
  Ecf policy;
  std::vector<PathView> paths{path(100ms, 1ms, 10000, true), path(10ms, 1ms, 10000, true)};
  EXPECT_EQ(pick(policy, paths, 1000, 0), 1u);
}

TEST(Ecf, NothingOpen) {
  Ecf policy;
  std::vector<PathView> paths{path(10ms, 1ms, 10000, false)};
  EXPECT_EQ(pick(policy, paths, 1000, 0), std::nullopt);
  EXPECT_EQ(pick(policy, {}, 1000, 0), std::nullopt);
}

TEST(Ecf, ShortTailWaitsForTheFastPath) {
  Ecf policy;
  std::vector<PathView> paths{path(10ms, 1ms, 10000, false), path(100ms, 5ms, 10000, true)};
  // n = 2: 20 ms < 105 ms, and one round on the slow path, 100 ms >= 2 * 10 + 5: wait.
  EXPECT_EQ(pick(policy, paths, 1000, 0), std::nullopt);
  EXPECT_TRUE(policy.waiting());
}

TEST(Ecf, LongQueueUsesTheSlowPath) {
  Ecf policy;
  std::vector<PathView> paths{path(10ms, 1ms, 10000, false), path(100ms, 5ms, 10000, true)};
  // k = 96000: n = 10.6, 106 ms is not < 105 ms.
  EXPECT_EQ(pick(policy, paths, 1000, 95'000), 1u);
  // k = 94000: n = 10.4, 104 ms < 105 ms; 9.4 rounds of 100 ms >= 25 ms: wait.
  EXPECT_EQ(pick(policy, paths, 1000, 93'000), std::nullopt);
}

TEST(Ecf, HysteresisKeepsWaiting) {
  Ecf policy;
  std::vector<PathView> paths{path(10ms, 1ms, 10000, false), path(100ms, 5ms, 10000, true)};
  ASSERT_EQ(pick(policy, paths, 1000, 0), std::nullopt);
  // Waiting: the limit is 1.25 * 105 = 131.25 ms. k = 121000: n = 13.1, 131 ms.
  EXPECT_EQ(pick(policy, paths, 1000, 120'000), std::nullopt);
  // k = 122000: n = 13.2, 132 ms: the slow path, and no longer waiting.
  EXPECT_EQ(pick(policy, paths, 1000, 121'000), 1u);
  EXPECT_FALSE(policy.waiting());
  EXPECT_EQ(pick(policy, paths, 1000, 120'000), 1u);
}

TEST(Ecf, LittleSlowerPathIsUsed) {
  Ecf policy;
  // n = 2: 40 ms < 45 + 5, but a round of 44.9 ms < 2 * 20 + 5: no gain in waiting; 45 ms is.
  std::vector<PathView> paths{path(20ms, 1ms, 10000, false), path(44900us, 5ms, 10000, true)};
  EXPECT_EQ(pick(policy, paths, 1000, 0), 1u);
  EXPECT_FALSE(policy.waiting());
  paths[1].srtt = 45ms;
  EXPECT_EQ(pick(policy, paths, 1000, 0), std::nullopt);
}

TEST(Ecf, LargerVariationOfTheTwoCounts) {
  Ecf policy;
  std::vector<PathView> paths{path(20ms, 30ms, 10000, false), path(45ms, 5ms, 10000, true)};
  // delta = 30: a round of 45 ms < 40 + 30.
  EXPECT_EQ(pick(policy, paths, 1000, 0), 1u);
}

TEST(Ecf, UnusableFastPathIsNotWaitedFor) {
  Ecf policy;
  std::vector<PathView> paths{path(10ms, 1ms, 10000, false, false), path(100ms, 5ms, 10000, true)};
  EXPECT_EQ(pick(policy, paths, 1000, 0), 1u);
}

TEST(Ecf, ZeroWindowDoesNotDivide) {
  Ecf policy;
  std::vector<PathView> paths{path(10ms, 1ms, 0, false), path(100ms, 5ms, 0, true)};
  EXPECT_EQ(pick(policy, paths, 1000, 0), 1u);
}

}  // namespace
}  // namespace braid::ecf_test
