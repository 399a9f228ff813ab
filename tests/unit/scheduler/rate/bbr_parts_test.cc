#include <gtest/gtest.h>

#include "scheduler/rate/rivals/bbr.h"

namespace braid::bbr_parts_test {
namespace {

// ---- BbrBandwidth

AckSample rated(double rate, bool appLimited = false) {
  AckSample ack;
  ack.deliveryRate = rate;
  ack.appLimited = appLimited;
  return ack;
}

TEST(BbrBandwidth, IsTheHighestRateOfTenRounds) {
  BbrBandwidth bandwidth;
  bandwidth.onAck(rated(2e6));
  for (int i = 0; i < 9; ++i) {
    bandwidth.beginRound();
    bandwidth.onAck(rated(1e6));
  }
  EXPECT_EQ(bandwidth.get(), 2e6);
  bandwidth.beginRound();
  bandwidth.onAck(rated(1e6));
  EXPECT_EQ(bandwidth.get(), 1e6);
}

TEST(BbrBandwidth, ARateThatTheSenderLimitedOnlyRaisesIt) {
  BbrBandwidth bandwidth;
  bandwidth.onAck(rated(2e6));
  for (int i = 0; i < 30; ++i) {
    bandwidth.beginRound();
    bandwidth.onAck(rated(1e6, true));
  }
  EXPECT_EQ(bandwidth.get(), 2e6);
  bandwidth.onAck(rated(3e6, true));
  EXPECT_EQ(bandwidth.get(), 3e6);
}

// ---- BbrBound

TEST(BbrBound, ACongestedRoundLeavesSeventeenTwentieths) {
  BbrBound bound(1000);
  bound.onMarks(1);
  EXPECT_TRUE(bound.onRound(100ms, 100ms, 100e3, 0));
  EXPECT_DOUBLE_EQ(bound.get(), 85e3);
  EXPECT_FALSE(bound.onRound(100ms, 100ms, 100e3, 0));
  EXPECT_DOUBLE_EQ(bound.get(), 85e3);
}

TEST(BbrBound, TwoPercentLostIsCongestionWithAQueueOnly) {
  BbrBound bound(1000);
  auto round = [&](Duration srtt) {
    bound.onLoss(3000);
    bound.onAck(97000);
    return bound.onRound(srtt, 100ms, 100e3, 0);
  };
  EXPECT_FALSE(round(125ms));
  EXPECT_TRUE(round(126ms));
}

TEST(BbrBound, TwoDatagramsAreNoCongestion) {
  BbrBound bound(1000);
  bound.onLoss(2000);
  EXPECT_FALSE(bound.onRound(200ms, 100ms, 100e3, 0));
}

TEST(BbrBound, IsNotLowerThanTheLeast) {
  BbrBound bound(1000);
  bound.onMarks(1);
  bound.onRound(100ms, 100ms, 100e3, 90e3);
  EXPECT_DOUBLE_EQ(bound.get(), 90e3);
}

TEST(BbrBound, RisesWithProbesUntilItGoes) {
  BbrBound bound(1000);
  bound.onMarks(1);
  bound.onRound(100ms, 100ms, 100e3, 0);
  bound.raise(1.25);
  EXPECT_DOUBLE_EQ(bound.get(), 106'250);
  bound.release(107e3);
  EXPECT_DOUBLE_EQ(bound.get(), 106'250);
  bound.release(106e3);
  EXPECT_GT(bound.get(), 1e17);
}

}  // namespace
}  // namespace braid::bbr_parts_test
