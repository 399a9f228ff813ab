#include "scheduler/recovery/loss_estimate.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace braid::loss_estimate_test {
namespace {

/// Sends packets and reports their fates in the order of their numbers.
struct Path {
  LossEstimate estimate;
  uint64_t pn = 0;
  void run(int packets, bool lost) {
    for (int i = 0; i < packets; ++i, ++pn) {
      estimate.onSent();
      if (lost) {
        estimate.onLost(pn);
      } else {
        estimate.onAcked();
      }
    }
  }
};

TEST(LossEstimate, NothingIsKnownAtFirst) {
  LossEstimate e;
  EXPECT_EQ(e.sent(), 0u);
  EXPECT_EQ(e.lost(), 0u);
  EXPECT_EQ(e.sinceLoss(), 0u);
  EXPECT_EQ(e.recentRate(), 0);
  EXPECT_EQ(e.recentPackets(), 0);
  EXPECT_EQ(e.burst(), 1);
}

TEST(LossEstimate, CountsWhatIsSentAndLost) {
  Path p;
  p.run(9, false);
  p.run(1, true);
  EXPECT_EQ(p.estimate.sent(), 10u);
  EXPECT_EQ(p.estimate.lost(), 1u);
  EXPECT_NEAR(p.estimate.recentRate(), 0.1, 0.001);
  EXPECT_NEAR(p.estimate.recentPackets(), 10, 0.1);
}

TEST(LossEstimate, ALossByCongestionIsNoLossRate) {
  Path p;
  p.run(50, false);
  for (uint64_t pn : {50, 51, 52}) {
    p.estimate.onSent();
    p.estimate.onLost(pn, LossCause::kCongestion);
  }
  EXPECT_EQ(p.estimate.lost(), 3u) << "FUSO counts all";
  EXPECT_EQ(p.estimate.sinceLoss(), 1u);
  EXPECT_EQ(p.estimate.recentRate(), 0);
  EXPECT_EQ(p.estimate.burst(), 1);
  p.estimate.onSpurious(LossCause::kCongestion);
  EXPECT_EQ(p.estimate.lost(), 2u);
  EXPECT_EQ(p.estimate.recentRate(), 0);
}

// FUSO section III-B.1: counted from the latest retransmission on, inclusive.
TEST(LossEstimate, SinceLossCountsFromTheNoticeAndIsAtLeastOne) {
  Path p;
  p.run(5, false);
  EXPECT_EQ(p.estimate.sinceLoss(), 0u) << "nothing was lost";
  p.run(1, true);
  EXPECT_EQ(p.estimate.sinceLoss(), 1u) << "the retransmission has not left yet";
  p.run(1, false);
  EXPECT_EQ(p.estimate.sinceLoss(), 1u) << "that was it";
  p.run(6, false);
  EXPECT_EQ(p.estimate.sinceLoss(), 7u);
}

TEST(LossEstimate, ASpuriousLossIsTakenBack) {
  Path p;
  p.run(9, false);
  p.run(1, true);
  p.estimate.onSpurious();
  EXPECT_EQ(p.estimate.lost(), 0u);
  EXPECT_EQ(p.estimate.sinceLoss(), 0u);
  EXPECT_EQ(p.estimate.recentRate(), 0);
  EXPECT_EQ(p.estimate.burst(), 1);
  p.estimate.onSpurious();
  EXPECT_EQ(p.estimate.lost(), 0u) << "never below nothing";
  EXPECT_EQ(p.estimate.recentRate(), 0);
}

TEST(LossEstimate, TheRecentRateForgets) {
  Path p;
  p.run(2000, true);
  p.run(1000, false);
  EXPECT_NEAR(p.estimate.recentRate(), 0.37, 0.06) << "63 % are forgotten";
  p.run(9000, false);
  EXPECT_LT(p.estimate.recentRate(), 0.001);
  EXPECT_GT(p.estimate.recentPackets(), 0.99 * LossEstimate::kMemory);
  EXPECT_LE(p.estimate.recentPackets(), LossEstimate::kMemory);
  EXPECT_EQ(p.estimate.lost(), 2000u) << "the overall count does not";
}

TEST(LossEstimate, TheRecentRateIsTheShareWhileThereAreFew) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    Path p;
    int lost = 0;
    for (int i = 0; i < 50; ++i) {
      bool loss = random.chance(0.2);
      lost += loss;
      p.run(1, loss);
    }
    ASSERT_NEAR(p.estimate.recentRate(), lost / 50.0, 0.03) << "seed " << seed;
  }
}

TEST(LossEstimate, ABurstIsARunOfConsecutiveNumbers) {
  Path p;
  for (int i = 0; i < 10; ++i) {
    p.run(3, true);
    p.run(7, false);
  }
  EXPECT_EQ(p.estimate.burst(), 3);
}

TEST(LossEstimate, SingleLossesAreBurstsOfOne) {
  Path p;
  for (int i = 0; i < 100; ++i) {
    p.run(1, true);
    p.run(1, false);
  }
  EXPECT_EQ(p.estimate.burst(), 1);
}

TEST(LossEstimate, TheFirstPacketOfAllMayBeLost) {
  Path p;
  p.run(2, true);
  EXPECT_EQ(p.estimate.burst(), 2);
}

TEST(LossEstimate, BurstsForget) {
  Path p;
  for (int i = 0; i < 200; ++i) {
    p.run(5, true);
    p.run(5, false);
  }
  for (int i = 0; i < 200; ++i) {
    p.run(1, true);
    p.run(5, false);
  }
  EXPECT_LT(p.estimate.burst(), 1.2);
  EXPECT_GE(p.estimate.burst(), 1);
}

TEST(LossEstimateProperty, StaysWithinItsBounds) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    LossEstimate e;
    uint64_t pn = 0;
    for (int i = 0; i < 2000; ++i) {
      switch (random.below(4)) {
        case 0:
          e.onSent();
          break;
        case 1:
          e.onAcked();
          break;
        case 2:
          e.onLost(pn += 1 + random.below(2));
          break;
        case 3:
          e.onSpurious();
          break;
      }
      ASSERT_GE(e.recentRate(), 0) << "seed " << seed;
      ASSERT_LE(e.recentRate(), 1 + 1e-9) << "seed " << seed;
      ASSERT_LE(e.recentPackets(), LossEstimate::kMemory) << "seed " << seed;
      ASSERT_GE(e.burst(), 1) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace braid::loss_estimate_test
