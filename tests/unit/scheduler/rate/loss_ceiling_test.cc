#include "scheduler/rate/wan_detectors.h"

#include <gtest/gtest.h>

namespace braid::loss_ceiling_test {
namespace {

/// Rounds of 100 ms in which 1 MB/s (100 packets) is sent.
struct LossCeilingTest : testing::Test {
  PolicerDetector c{1000};
  Time now = at(0s);
  double known = 0;  // recent arrival rate, bytes per second
  static Time at(Duration t) { return Time{} + t; }
  /// `lost` of 100 packets of 1000 bytes.
  void round(uint64_t lost, bool queue = false, bool ofCeiling = true) {
    now += 100ms;
    auto bytes = static_cast<double>(lost * 1000);
    c.onRound({now, 100e3 - bytes, bytes, lost, (100e3 - bytes) * 10, known, queue, ofCeiling});
  }
  void rounds(int n, uint64_t lost) {
    for (int i = 0; i < n; ++i) round(lost);
  }
  bool bound() const { return c.ceiling() < 1e17; }
};

TEST_F(LossCeilingTest, TwoRoundsOfMuchLossSetItBelowWhatArrived) {
  round(20);
  EXPECT_FALSE(bound());
  round(20);
  EXPECT_DOUBLE_EQ(c.ceiling(), 0.95 * 800e3);
}

TEST_F(LossCeilingTest, ASingleBurstDoesNot) {
  round(20);
  round(0);
  round(20);
  EXPECT_FALSE(bound());
}

TEST_F(LossCeilingTest, LittleLossTakesMoreRounds) {
  rounds(3, 9);
  EXPECT_FALSE(bound()) << "27 % together";
  round(9);
  EXPECT_TRUE(bound());
}

TEST_F(LossCeilingTest, FewPacketsAreNoProof) {
  for (int i = 0; i < 10; ++i) {
    now += 100ms;
    c.onRound({now, 17e3, 3e3, 3, 170e3, 0, false, false});
  }
  EXPECT_FALSE(bound());
}

TEST_F(LossCeilingTest, ABurstAfterAPauseIsNoProof) {
  known = 1e6;
  for (int i = 0; i < 5; ++i) {
    now += 100ms;
    c.onRound({now, 40e3, 20e3, 20, 400e3, known, false, true});
  }
  EXPECT_FALSE(bound());
  rounds(2, 30);
  EXPECT_TRUE(bound()) << "that much was sent as has arrived of late";
}

TEST_F(LossCeilingTest, ABurstAfterAPauseLowersNoCeiling) {
  known = 1e6;
  rounds(2, 20);
  rounds(6, 0);
  double before = c.ceiling();
  for (int i = 0; i < 10; ++i) {
    now += 100ms;
    c.onRound({now, 30e3, 15e3, 15, 300e3, known, false, true});
  }
  EXPECT_EQ(c.ceiling(), before);
}

TEST_F(LossCeilingTest, LossWithAQueueIsAnOverflow) {
  for (int i = 0; i < 5; ++i) round(20, true);
  EXPECT_FALSE(bound());
}

TEST_F(LossCeilingTest, RoundsWithAQueueThatLoseDoNotInterruptTheOthers) {
  for (int i = 0; i < 2; ++i) {
    round(20);
    round(20, true);
  }
  EXPECT_TRUE(bound()) << "a buffer about as large as the target";
}

TEST_F(LossCeilingTest, UsualLossIsNotSuspicious) {
  for (int i = 0; i < 100; ++i) round(4, false, false);
  EXPECT_NEAR(c.usualLoss(), 0.04, 1e-3);
  for (int i = 0; i < 2; ++i) round(8, false, false);  // less than 5 % above
  EXPECT_FALSE(bound());
  for (int i = 0; i < 2; ++i) round(20, false, false);
  EXPECT_TRUE(bound());
}

TEST_F(LossCeilingTest, UsualLossIsTriedAfterTenSecondsThenTwentyThenForty) {
  int n = 0;
  for (; !bound() && n < 200; ++n) round(2);
  EXPECT_EQ(n, 11);  // 0.02 * (1 - (15/16)^11) = 0.0102
  EXPECT_DOUBLE_EQ(c.ceiling(), 0.95 * 980e3);
  rounds(60, 2);
  EXPECT_FALSE(bound());  // the rate was not halved
  // The trial ends after 1 round of lag and more than 20 losses, 11 rounds; 48 are over.
  for (n = 48; !bound() && n < 900; ++n) round(2);
  EXPECT_EQ(n, 100);
  rounds(12, 2);
  EXPECT_FALSE(bound());
  for (n = 0; !bound() && n < 900; ++n) round(2);
  EXPECT_EQ(n, 200);
}

TEST_F(LossCeilingTest, FewLossesByChanceEndNoTrial) {
  rounds(11, 2);
  rounds(10, 0);  // 10 would have been lost, by 0.0102
  rounds(12, 2);
  EXPECT_FALSE(bound());
}

TEST_F(LossCeilingTest, ATrialThatTellsNothingIsGivenUpAfterFiveSeconds) {
  rounds(2, 20);
  for (int i = 0; i < 50; ++i) {  // a packet a round: 200 are wanted
    now += 100ms;
    c.onRound({now, 1e3, 0, 0, 10e3, 0, false, false});
    EXPECT_TRUE(bound()) << i;
  }
  now += 100ms;
  c.onRound({now, 1e3, 0, 0, 10e3, 0, false, false});
  EXPECT_FALSE(bound());
}

TEST_F(LossCeilingTest, UsualLossThatALowerRateEndsIsAPolicer) {
  rounds(11, 2);
  rounds(45, 0);
  EXPECT_TRUE(bound());
}

TEST_F(LossCeilingTest, LossOnAPathWithAQueueIsNotTried) {
  for (int i = 0; i < 200; ++i) round(2, true);
  EXPECT_FALSE(bound());
}

TEST_F(LossCeilingTest, LossThatStaysBelowItWasNotCausedByTheRate) {
  rounds(2, 20);
  rounds(4, 20);
  EXPECT_TRUE(bound());
  round(20);  // the first round still reflects the time before; the next four are the trial
  EXPECT_TRUE(bound()) << "a second trial";
  rounds(4, 20);
  EXPECT_TRUE(bound());
  round(20);
  EXPECT_FALSE(bound());
  EXPECT_NEAR(c.usualLoss(), 0.2, 1e-9);
}

// What arrived first was the bucket's, so the first ceiling was above the policer's rate.
TEST_F(LossCeilingTest, ASecondTrialIsLower) {
  round(20);
  round(50);
  EXPECT_DOUBLE_EQ(c.ceiling(), 0.95 * 800e3);
  rounds(5, 40);
  EXPECT_DOUBLE_EQ(c.ceiling(), 0.95 * 600e3);
  rounds(9, 0);
  EXPECT_DOUBLE_EQ(c.ceiling(), 0.95 * 600e3);
}

// A burst of losses that is over within a round or two says nothing about the ceiling.
TEST_F(LossCeilingTest, StaysWhenFewRoundsHadAllTheLosses) {
  rounds(2, 20);
  rounds(5, 0);
  round(0);
  round(30);
  round(30);
  round(0);
  EXPECT_DOUBLE_EQ(c.ceiling(), 0.95 * 800e3);
}

TEST_F(LossCeilingTest, ARaiseThatFailedNeedsNoTrial) {
  rounds(2, 20);
  rounds(10, 0);
  rounds(3, 9);  // a lag, and two rounds that lose
  double rate = c.ceiling();
  for (int i = 0; i < 9; ++i) {  // one packet a round, as a trial could not be decided
    now += 100ms;
    c.onRound({now, 1e3, 0, 0, 10e3, 0, false, false});
  }
  EXPECT_DOUBLE_EQ(c.ceiling(), rate);
}

TEST_F(LossCeilingTest, ARaiseWithMuchLossFailsAtOnce) {
  rounds(2, 20);
  rounds(10, 0);
  round(0);
  round(30);
  EXPECT_DOUBLE_EQ(c.ceiling(), 0.95 * 800e3);
}

TEST_F(LossCeilingTest, IsNotRaisedTwiceWithinFiftyMilliseconds) {
  rounds(2, 20);
  rounds(10, 0);
  double rate = c.ceiling();
  for (int i = 0; i < 5; ++i) {
    now += 10ms;
    c.onRound({now, 100e3, 0, 0, 1e6, known, false, true});
  }
  EXPECT_DOUBLE_EQ(c.ceiling(), 1.1 * rate);
}

TEST_F(LossCeilingTest, WhatWasLostBeforeItHeldDoesNotCount) {
  rounds(2, 20);
  round(50);
  rounds(4, 1);
  EXPECT_TRUE(bound());
}

TEST_F(LossCeilingTest, GoesLowerWhenTheLossIsLessButNotOver) {
  rounds(2, 20);
  rounds(5, 6);  // less than half of 20 %, more than 2 % above the usual 0
  EXPECT_DOUBLE_EQ(c.ceiling(), 0.95 * 940e3);
}

TEST_F(LossCeilingTest, GoesLowerWhenTheBucketHidTheLossAtFirst) {
  rounds(2, 20);
  rounds(5, 0);
  rounds(4, 6);
  EXPECT_DOUBLE_EQ(c.ceiling(), 0.95 * 940e3);
}

TEST_F(LossCeilingTest, IsTriedAfterASecond) {
  rounds(2, 20);
  double rate = c.ceiling();
  rounds(9, 0);
  EXPECT_DOUBLE_EQ(c.ceiling(), rate);
  round(0);
  EXPECT_DOUBLE_EQ(c.ceiling(), 1.1 * rate);
}

TEST_F(LossCeilingTest, HoldsWhenTryingLosesMore) {
  rounds(2, 20);
  rounds(10, 0);
  round(9);  // was on its way
  round(3);  // the bucket still has tokens
  EXPECT_DOUBLE_EQ(c.ceiling(), 1.1 * 1.1 * 0.95 * 800e3);
  round(9);
  EXPECT_DOUBLE_EQ(c.ceiling(), 1.1 * 1.1 * 0.95 * 800e3);
  round(14);
  EXPECT_DOUBLE_EQ(c.ceiling(), 0.95 * 860e3);
}

TEST_F(LossCeilingTest, ThePauseDoublesUpToSixteenSeconds) {
  rounds(2, 20);
  // The first raise brought more than a tenth more, so the next one follows as soon.
  int pauses[] = {10, 10, 20, 40, 80, 160, 160};
  for (int pause : pauses) {
    double rate = c.ceiling();
    rounds(pause - 1, 0);
    ASSERT_DOUBLE_EQ(c.ceiling(), rate);
    round(0);
    ASSERT_GT(c.ceiling(), rate);
    rounds(3, 9);
    ASSERT_LT(c.ceiling(), 0.95 * 911e3);
  }
}

TEST_F(LossCeilingTest, GoesWhenTwiceWhatArrivesCostsNothing) {
  rounds(2, 20);
  rounds(10, 0);
  round(0);  // lag
  for (int i = 0; i < 9 && bound(); ++i)
    round(0);  // 0.95 * 0.8 * 1.1^n > 2: n = 11, one of them before
  EXPECT_TRUE(bound());
  round(0);
  EXPECT_FALSE(bound());
}

TEST_F(LossCeilingTest, IsNotRaisedWhileTheSenderDoesNotUseIt) {
  rounds(2, 20);
  rounds(10, 0);
  double rate = c.ceiling();
  for (int i = 0; i < 50; ++i) round(0, false, false);
  EXPECT_DOUBLE_EQ(c.ceiling(), rate);
}

TEST_F(LossCeilingTest, ACeilingThatIsBackSoonIsHeldTwiceAsLong) {
  rounds(2, 20);
  rounds(10, 0);
  round(0);
  round(0, true);
  ASSERT_FALSE(bound());
  rounds(2, 20);
  ASSERT_TRUE(bound());
  double rate = c.ceiling();
  rounds(19, 0);
  EXPECT_DOUBLE_EQ(c.ceiling(), rate);
  round(0);
  EXPECT_DOUBLE_EQ(c.ceiling(), 1.1 * rate);
}

TEST_F(LossCeilingTest, GoesWhenAQueueShows) {
  rounds(2, 20);
  rounds(10, 0);
  round(0);
  round(0, true);
  EXPECT_FALSE(bound());
}

}  // namespace
}  // namespace braid::loss_ceiling_test
