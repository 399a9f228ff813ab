#include "scheduler/rate/wan_model.h"

#include <gtest/gtest.h>

namespace braid::wan_target_test {
namespace {

TEST(WanTarget, IsFiveMillisecondsAtFiftyMegabits) {
  EXPECT_DOUBLE_EQ(WanTarget(1000).secondsAt(6.25e6), 5e-3);
}

TEST(WanTarget, FallsWithTheCubeRoot) {
  EXPECT_DOUBLE_EQ(WanTarget(1000).secondsAt(8 * 6.25e6), 2.5e-3);
  EXPECT_DOUBLE_EQ(WanTarget(1000).secondsAt(6.25e6 / 8), 10e-3);
}

TEST(WanTarget, IsTwoDatagramsAtLeast) {
  EXPECT_DOUBLE_EQ(WanTarget(1000).secondsAt(100e3), 20e-3);
}

TEST(WanTarget, StaysWithinItsBounds) {
  EXPECT_DOUBLE_EQ(WanTarget(1000).secondsAt(10e3), 25e-3);
  EXPECT_DOUBLE_EQ(WanTarget(1000).secondsAt(1e9), 1e-3);
}

TEST(WanTarget, IsTheMostWhereNoRateIsKnown) {
  EXPECT_EQ(WanTarget(1000).at(0), WanTarget::kMost);
}

TEST(WanTarget, ThoseThatShareTakeThatOfOneWithTheirRate) {
  WanTarget target(1000);
  target.setSharing(8);
  EXPECT_DOUBLE_EQ(target.secondsAt(6.25e6), 2.5e-3);
}

}  // namespace
}  // namespace braid::wan_target_test
