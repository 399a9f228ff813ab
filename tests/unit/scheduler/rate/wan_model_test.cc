#include "scheduler/rate/wan_model.h"

#include <gtest/gtest.h>

#include "tests/unit/scheduler/rate/wan_samples.h"

namespace braid::wan_model_test {
namespace {

constexpr double kTarget = 10e-3;  // seconds

/// 1 MB/s over 100 ms: 100 KB, and 10 KB for the target.
struct WanModelTest : testing::Test {
  FastWindow model{kBytes, 10};
};

TEST_F(WanModelTest, BeginsWithTheProductAndTheTarget) {
  PathModel path = pathOf(100ms, 150ms, 1e6);
  EXPECT_DOUBLE_EQ(model.begin(200e3, path, kTarget), 110e3);
  EXPECT_DOUBLE_EQ(model.begin(50e3, path, kTarget), 50e3);
}

TEST_F(WanModelTest, BeginsWithTheInitialWindowAtLeast) {
  EXPECT_DOUBLE_EQ(model.begin(200e3, pathOf(100ms, 150ms, 1e3), kTarget), 10e3);
}

TEST_F(WanModelTest, IsAtRestWithTheTargetQueued) {
  EXPECT_NEAR(model.onRound(110e3, pathOf(100ms, 110ms, 1e6), kTarget), 110e3, 1e-6);
}

TEST_F(WanModelTest, GoesHalfWayToWhatTheEquationSays) {
  // (130 KB * 100 / 125 + 10 KB) = 114 KB
  EXPECT_NEAR(model.onRound(130e3, pathOf(100ms, 125ms, 1e6), kTarget), 122e3, 1e-6);
}

TEST_F(WanModelTest, DoublesItsStepsFromTheFourthRoundWithLittleQueued) {
  PathModel path = pathOf(100ms, 100ms, 1e6);
  for (double factor : {1, 1, 1, 2, 4}) {
    EXPECT_NEAR(model.onRound(100e3, path, kTarget), 100e3 + factor * 5e3, 1e-6);
  }
}

TEST_F(WanModelTest, AMarkEndsTheSteadyRounds) {
  PathModel path = pathOf(100ms, 100ms, 1e6);
  for (int i = 0; i < 3; ++i) model.onRound(100e3, path, kTarget);
  EXPECT_DOUBLE_EQ(model.onMarkedRound(100e3), 85e3);
  EXPECT_NEAR(model.onRound(100e3, path, kTarget), 105e3, 1e-6);
}

TEST_F(WanModelTest, FallsToFourDatagramsAtMost) {
  EXPECT_DOUBLE_EQ(model.onMarkedRound(4e3), 4e3);
  EXPECT_DOUBLE_EQ(model.onRound(4e3, pathOf(100ms, 10s, 1e3), 1e-3), 4e3);
}

TEST_F(WanModelTest, AnUnusedWindowOnlyFalls) {
  PathModel path = pathOf(100ms, 100ms, 1e6);
  WanRound round = roundAt(1e6, 100ms, at(2s));
  EXPECT_DOUBLE_EQ(model.onUnusedRound(100e3, round, path, kTarget), 100e3);
  round.rtts = 125ms;  // the mean; the smallest found no queue
  EXPECT_NEAR(model.onUnusedRound(130e3, round, path, kTarget), 122e3, 1e-6);
}

TEST_F(WanModelTest, AWindowThatIsTooSmallForABurstGrowsByAQuarterUnlessItQueues) {
  PathModel path = pathOf(100ms, 100ms, 1e6);
  WanRound round = roundAt(1e6, 100ms, at(2s));
  round.tooSmall = true;
  EXPECT_DOUBLE_EQ(model.onUnusedRound(100e3, round, path, kTarget), 125e3);
  round.rtts = 105ms;  // half the target
  EXPECT_LE(model.onUnusedRound(100e3, round, path, kTarget), 100e3);
}

}  // namespace
}  // namespace braid::wan_model_test
