#include "scheduler/rate/rtt.h"

#include <gtest/gtest.h>

namespace braid::rtt_test {
namespace {

constexpr Time at(Duration d) {
  return Time{} + d;
}

TEST(Rtt, BeforeTheFirstSample) {
  RttEstimator rtt;
  EXPECT_FALSE(rtt.hasSample());
  EXPECT_EQ(rtt.smoothed(), 333ms);
  EXPECT_EQ(rtt.variation(), 166500us);
  EXPECT_EQ(rtt.windowedMin(), 0ms);
}

TEST(Rtt, FirstSampleSetsAllAndIgnoresAckDelay) {
  RttEstimator rtt;
  rtt.onSample(100ms, 30ms, at(1s));
  EXPECT_TRUE(rtt.hasSample());
  EXPECT_EQ(rtt.latest(), 100ms);
  EXPECT_EQ(rtt.min(), 100ms);
  EXPECT_EQ(rtt.smoothed(), 100ms);
  EXPECT_EQ(rtt.variation(), 50ms);
}

TEST(Rtt, SecondSampleByHand) {
  RttEstimator rtt;
  rtt.onSample(100ms, 0ms, at(1s));
  rtt.onSample(140ms, 20ms, at(2s));
  // adjusted 120; rttvar 3/4 * 50 + 1/4 * |100 - 120| = 42.5; smoothed 7/8 * 100 + 1/8 * 120 =
  // 102.5
  EXPECT_EQ(rtt.variation(), 42500us);
  EXPECT_EQ(rtt.smoothed(), 102500us);
  EXPECT_EQ(rtt.latest(), 140ms);
  EXPECT_EQ(rtt.min(), 100ms);
}

TEST(Rtt, AckDelayNeverTakesASampleBelowTheMinimum) {
  RttEstimator rtt;
  rtt.onSample(100ms, 0ms, at(1s));
  rtt.onSample(110ms, 20ms, at(1s));
  // 110 < 100 + 20: not adjusted. rttvar 37.5 + 2.5 = 40, smoothed 87.5 + 13.75 = 101.25
  EXPECT_EQ(rtt.variation(), 40ms);
  EXPECT_EQ(rtt.smoothed(), 101250us);
  RttEstimator edge;
  edge.onSample(100ms, 0ms, at(1s));
  edge.onSample(120ms, 20ms, at(1s));
  // 120 = 100 + 20: adjusted to 100
  EXPECT_EQ(edge.smoothed(), 100ms);
  EXPECT_EQ(edge.variation(), 37500us);
}

TEST(Rtt, MinimumIgnoresAckDelay) {
  RttEstimator rtt;
  rtt.onSample(100ms, 0ms, at(1s));
  rtt.onSample(90ms, 50ms, at(1s));
  EXPECT_EQ(rtt.min(), 90ms);
}

TEST(Rtt, WindowedMinimumForgets) {
  RttEstimator rtt;
  rtt.onSample(20ms, 0ms, at(5500ms));
  for (int s = 6; s <= 15; ++s) {
    rtt.onSample(Duration(50ms), 0ms, at(std::chrono::seconds(s)));
    EXPECT_EQ(rtt.windowedMin(), 20ms) << s;
  }
  rtt.onSample(60ms, 0ms, at(16s));
  EXPECT_EQ(rtt.windowedMin(), 50ms);
  EXPECT_EQ(rtt.min(), 20ms);
  rtt.onSample(70ms, 0ms, at(1000s));
  EXPECT_EQ(rtt.windowedMin(), 70ms);
}

TEST(Rtt, WindowedMinimumWorksBeforeTheEpoch) {
  RttEstimator rtt;
  rtt.onSample(30ms, 0ms, at(-25s));
  rtt.onSample(40ms, 0ms, at(-20s));
  EXPECT_EQ(rtt.windowedMin(), 30ms);
  rtt.onSample(50ms, 0ms, at(-10s));
  EXPECT_EQ(rtt.windowedMin(), 40ms);
}

TEST(Rtt, ResetIsAsNew) {
  RttEstimator rtt;
  rtt.onSample(10ms, 0ms, at(1s));
  rtt.reset();
  EXPECT_FALSE(rtt.hasSample());
  EXPECT_EQ(rtt.smoothed(), 333ms);
  rtt.onSample(80ms, 0ms, at(2s));
  EXPECT_EQ(rtt.min(), 80ms);
  EXPECT_EQ(rtt.windowedMin(), 80ms);
}

}  // namespace
}  // namespace braid::rtt_test
