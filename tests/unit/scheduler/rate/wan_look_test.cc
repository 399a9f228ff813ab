#include "scheduler/rate/wan_detectors.h"

#include <gtest/gtest.h>

#include "tests/unit/scheduler/rate/wan_samples.h"

namespace braid::wan_look_test {
namespace {

/// 1 MB/s over 100 ms with 50 ms of queue: the path holds 100 KB of a window of 150 KB.
struct WanLookTest : testing::Test {
  RttProbe look;
  PathModel path = pathOf(100ms, 150ms, 1e6);
};

TEST_F(WanLookTest, LowersTheWindowToAPartOfWhatThePathHolds) {
  EXPECT_EQ(look.limit(150e3), 150e3);
  look.begin(150e3, path, 4e3);
  EXPECT_NEAR(look.limit(150e3), 85e3, 1e-6);
  EXPECT_EQ(look.limit(20e3), 20e3);
}

TEST_F(WanLookTest, WhatArrivesBoundsWhatThePathHolds) {
  look.begin(300e3, path, 4e3);
  EXPECT_NEAR(look.limit(300e3), 85e3, 1e-6);
}

TEST_F(WanLookTest, LeavesTheLeastWindow) {
  look.begin(2e3, path, 4e3);
  EXPECT_EQ(look.limit(150e3), 4e3);
}

TEST_F(WanLookTest, EndsWhenNoMoreIsInFlightAndHasOneAnswer) {
  look.begin(150e3, path, 4e3);
  look.onRound(86e3);
  EXPECT_TRUE(look.isLowered());
  EXPECT_FALSE(look.takeAnswer());
  look.onRound(84e3);
  EXPECT_FALSE(look.isLowered());
  EXPECT_EQ(look.limit(150e3), 150e3);
  EXPECT_TRUE(look.isOn());
  EXPECT_TRUE(look.takeAnswer());
  EXPECT_FALSE(look.isOn());
  EXPECT_FALSE(look.takeAnswer());
}

TEST_F(WanLookTest, APauseEndsItWithoutAnAnswer) {
  look.begin(150e3, path, 4e3);
  look.onPause();
  EXPECT_FALSE(look.isOn());
  EXPECT_FALSE(look.takeAnswer());
}

}  // namespace
}  // namespace braid::wan_look_test
