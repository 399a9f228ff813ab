#include "scheduler/rate/wan_detectors.h"

#include <gtest/gtest.h>

#include "tests/unit/scheduler/rate/wan_samples.h"

namespace braid::wan_probe_test {
namespace {

/// 1 MB/s over 100 ms with 50 ms of queue: the path holds 100 KB of a window of 150 KB.
struct WanProbeTest : testing::Test {
  RttProbe probe;
  PathModel path = pathOf(100ms, 150ms, 1e6);
};

TEST_F(WanProbeTest, LowersTheWindowToAPartOfWhatThePathHolds) {
  EXPECT_EQ(probe.limit(150e3), 150e3);
  probe.begin(150e3, path, 4e3);
  EXPECT_NEAR(probe.limit(150e3), 85e3, 1e-6);
  EXPECT_EQ(probe.limit(20e3), 20e3);
}

TEST_F(WanProbeTest, WhatArrivesBoundsWhatThePathHolds) {
  probe.begin(300e3, path, 4e3);
  EXPECT_NEAR(probe.limit(300e3), 85e3, 1e-6);
}

TEST_F(WanProbeTest, LeavesTheLeastWindow) {
  probe.begin(2e3, path, 4e3);
  EXPECT_EQ(probe.limit(150e3), 4e3);
}

TEST_F(WanProbeTest, EndsWhenNoMoreIsInFlightAndHasOneAnswer) {
  probe.begin(150e3, path, 4e3);
  probe.onRound(86e3);
  EXPECT_TRUE(probe.isLowered());
  EXPECT_FALSE(probe.takeAnswer());
  probe.onRound(84e3);
  EXPECT_FALSE(probe.isLowered());
  EXPECT_EQ(probe.limit(150e3), 150e3);
  EXPECT_TRUE(probe.isActive());
  EXPECT_TRUE(probe.takeAnswer());
  EXPECT_FALSE(probe.isActive());
  EXPECT_FALSE(probe.takeAnswer());
}

TEST_F(WanProbeTest, APauseEndsItWithoutAnAnswer) {
  probe.begin(150e3, path, 4e3);
  probe.onPause();
  EXPECT_FALSE(probe.isActive());
  EXPECT_FALSE(probe.takeAnswer());
}

}  // namespace
}  // namespace braid::wan_probe_test
