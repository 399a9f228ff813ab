#include "scheduler/recovery/adaptive.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/random.h"

namespace braid::adaptive_test {
namespace {

constexpr Time kNow{1s};

/// An open path with a long enough history that its loss rate is certain. It has been silent for
/// longer than any pause.
RecoveryPath known(double lossRate, size_t uncoded = 0, Duration srtt = 40ms, double burst = 1) {
  return {.usable = true,
          .open = true,
          .srtt = srtt,
          .window = 100'000,
          .sent = 1'000'000,
          .recentRate = lossRate,
          .recentPackets = 1e9,
          .burst = burst,
          .lastSent = kNow - 1s,
          .uncopied = uncoded,
          .uncoded = uncoded,
          .unacked = uncoded};
}

std::optional<Protection> choose(Adaptive& policy, const std::vector<RecoveryPath>& paths,
                                 bool ended = false, size_t left = 0,
                                 RecoveryChance chance = RecoveryChance::kIdle) {
  return policy.choose(
      {.chance = chance, .paths = paths, .now = kNow, .ended = ended, .paritiesLeft = left});
}

struct AdaptiveTest : testing::Test {
  Adaptive policy{RecoveryOptions{}};
  std::optional<Protection> operator()(const std::vector<RecoveryPath>& paths, bool ended = false,
                                       size_t left = 0) {
    return choose(policy, paths, ended, left);
  }
  Time notBefore(const std::vector<RecoveryPath>& paths, bool ended = false, size_t left = 0,
                 RecoveryChance chance = RecoveryChance::kIdle) {
    return policy.notBefore(
        {.chance = chance, .paths = paths, .now = kNow, .ended = ended, .paritiesLeft = left});
  }
};

// ---- congestion

/// A path of which nothing is known but that it is congested.
RecoveryPath congestedPath(size_t uncoded) {
  RecoveryPath path = known(0, uncoded);
  path.recentPackets = 0;
  path.congested = true;
  return path;
}

TEST_F(AdaptiveTest, WhileAllPathsAreCongestedNothingIsProtected) {
  ASSERT_TRUE((*this)({known(0.1, 20), known(0.1, 20)}));
  RecoveryPath a = known(0.1, 20), b = known(0.1, 20), gone = known(0.1);
  a.congested = b.congested = true;
  gone.usable = gone.open = false;
  EXPECT_FALSE((*this)({a, b, gone}));
  EXPECT_FALSE((*this)({a, b}, true, 2)) << "nor is a block continued";
}

TEST_F(AdaptiveTest, WhereCongestionExplainsTheLossesThePriorDoesNotHold) {
  RecoveryPath fresh = known(0, 20);
  fresh.recentPackets = 0;
  ASSERT_TRUE((*this)({fresh, known(0)}));
  EXPECT_FALSE((*this)({congestedPath(20), known(0)}));
  RecoveryPath lossy = known(0.1, 20);
  lossy.congested = true;
  EXPECT_TRUE((*this)({lossy, known(0)})) << "it loses packets for other causes, too";
}

TEST_F(AdaptiveTest, ACongestedPathIsNoPlaceForProtection) {
  RecoveryPath congested = congestedPath(0), slower = known(0, 0, 44ms);
  auto chosen = (*this)({known(0.1, 20, 60ms), congested, slower});
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->on, 2u);
}

// ---- how many parities

/// P(N > m), N the sum of a Poisson number of geometric runs: by its definition.
double tailOf(double expected, double burst, size_t m) {
  double runs = expected / burst;
  double again = 1 - 1 / burst;
  double below = std::exp(-runs);
  for (size_t n = 1; n <= m; ++n) {
    for (size_t k = 1; k <= n; ++k) {
      double logChoose = std::lgamma(n) - std::lgamma(k) - std::lgamma(n - k + 1);
      double poisson = static_cast<double>(k) * std::log(runs) - runs - std::lgamma(k + 1);
      double lengths = static_cast<double>(k) * std::log(1 - again) +
                       (n > k ? static_cast<double>(n - k) * std::log(again) : 0);
      if (again == 0 && n > k) continue;
      below += std::exp(logChoose + poisson + lengths);
    }
  }
  return 1 - below;
}

TEST(AdaptiveParities, AreTheLeastThatLeaveTheResidual) {
  for (double expected : {0.0011, 0.01, 0.05, 0.2, 0.5, 1.0, 2.0, 4.0}) {
    for (double burst : {1.0, 1.3, 2.0, 4.0}) {
      size_t m = Adaptive::paritiesFor(expected, burst, 16);
      if (m < 16) {
        EXPECT_LE(tailOf(expected, burst, m), Adaptive::kResidual * 1.001)
            << expected << " in " << burst;
      }
      if (m > 0) {
        EXPECT_GT(tailOf(expected, burst, m - 1), Adaptive::kResidual * 0.999)
            << expected << " in " << burst;
      }
    }
  }
}

// Simulates a lossy path, on which each packet begins a run of losses with the same probability.
// The formula approximates this.
TEST(AdaptiveParities, HoldAgainstRandomLosses) {
  constexpr int kBlocks = 100'000;
  constexpr size_t kSymbols = 60;
  for (double rate : {0.005, 0.02, 0.05}) {
    size_t m = Adaptive::paritiesFor(rate * kSymbols, 1, 16);
    Random random(7);
    int beyond = 0;
    for (int block = 0; block < kBlocks; ++block) {
      size_t lost = 0;
      for (size_t i = 0; i < kSymbols; ++i) lost += random.chance(rate);
      beyond += lost > m;
    }
    EXPECT_LE(beyond, kBlocks * Adaptive::kResidual * 1.3) << rate << " with " << m;
  }
}

TEST(AdaptiveParities, NoneWhenALossIsNextToImpossible) {
  EXPECT_EQ(Adaptive::paritiesFor(0, 1, 16), 0u);
  EXPECT_EQ(Adaptive::paritiesFor(0.0009, 1, 16), 0u);
  EXPECT_EQ(Adaptive::paritiesFor(0.0011, 1, 16), 1u);
}

TEST(AdaptiveParities, AtMostSoMany) {
  EXPECT_EQ(Adaptive::paritiesFor(5, 1, 3), 3u);
  EXPECT_EQ(Adaptive::paritiesFor(2000, 1, 16), 16u) << "exp(-2000) is 0";
  EXPECT_EQ(Adaptive::paritiesFor(5, 1, 0), 0u);
}

TEST(AdaptiveParities, BurstsNeedMoreForTheSameNumberOfLosses) {
  EXPECT_GT(Adaptive::paritiesFor(0.2, 4, 16), Adaptive::paritiesFor(0.2, 1, 16));
}

// ---- the loss rate that the policy assumes

TEST(AdaptiveLossRate, IsThePriorWithItsDoubtAtFirst) {
  double doubt =
      std::sqrt(Adaptive::kPriorLoss * (1 - Adaptive::kPriorLoss) / Adaptive::kPriorPackets);
  EXPECT_DOUBLE_EQ(Adaptive::lossRate({}), Adaptive::kPriorLoss + Adaptive::kDoubt * doubt);
}

TEST(AdaptiveLossRate, PacketsDrawItAwayFromThePrior) {
  RecoveryPath path;
  double last = Adaptive::lossRate(path);
  for (double packets : {1.0, 10.0, 100.0, 1000.0}) {
    path.recentPackets = packets;
    EXPECT_LT(Adaptive::lossRate(path), last) << "none of " << packets << " lost";
    last = Adaptive::lossRate(path);
  }
  path.recentPackets = 1e9;
  path.recentRate = 0.02;
  EXPECT_NEAR(Adaptive::lossRate(path), 0.02, 1e-4) << "no doubt is left";
  path.recentPackets = 1000;
  double mixed = (20 + 1.0) / 1020;
  EXPECT_NEAR(Adaptive::lossRate(path), mixed + std::sqrt(mixed * (1 - mixed) / 1020), 1e-9);
}

// ---- when

TEST_F(AdaptiveTest, NothingWithoutUnprotectedPackets) {
  EXPECT_FALSE((*this)({known(0.02), known(0.02)}));
  EXPECT_EQ(policy.nextDeadline(), kNever) << "only the pause is waited for by time";
}

TEST_F(AdaptiveTest, WaitsForAPauseOfAnEighthOfTheRtt) {
  RecoveryPath path = known(0.02);  // before the path's own packets count
  path.lastSent = kNow;
  EXPECT_EQ(notBefore({path}), kNow + 5ms);
  path.lastSent = kNow - 5ms + 1ns;
  EXPECT_EQ(notBefore({path}), kNow + 1ns);
  path.lastSent = kNow - 5ms;
  EXPECT_EQ(notBefore({path}), kNow);
  path.lastSent = Time::min();
  EXPECT_EQ(notBefore({path}), kNow) << "nothing was ever sent";
}

TEST_F(AdaptiveTest, TheGapsOfAHostsTurnsAreNoPause) {
  RecoveryPath path = known(0.02, 5, 200us);
  path.lastSent = kNow - 99us;
  EXPECT_EQ(notBefore({path}), kNow + 1us);
  EXPECT_EQ(notBefore({path}, true), kNow) << "its end is known";
  path.lastSent = kNow - 100us;
  EXPECT_EQ(notBefore({path}), kNow);
}

TEST_F(AdaptiveTest, ThePauseIsThatOfAllPaths) {
  RecoveryPath busy = known(0.02, 0, 80ms);
  busy.lastSent = kNow - 6ms;
  EXPECT_EQ(notBefore({known(0.02, 5), busy}), kNow + 4ms);
  EXPECT_EQ(notBefore({busy, known(0.02, 5)}), kNow + 4ms);
  busy.usable = busy.open = false;
  EXPECT_EQ(notBefore({known(0.02, 5), busy}), kNow + 4ms) << "the flow went on there a moment ago";
}

TEST_F(AdaptiveTest, DoesNotWaitWhenTheFlowHasEnded) {
  RecoveryPath path = known(0.02, 5);
  path.lastSent = kNow;
  EXPECT_EQ(notBefore({path}, true), kNow);
  EXPECT_TRUE((*this)({path}, true));
}

TEST_F(AdaptiveTest, ParitiesOfABlockUnderWayDoNotWait) {
  RecoveryPath path = known(0.02, 5);
  path.lastSent = kNow;
  EXPECT_EQ(notBefore({path}, false, 2), kNow);
  auto next = (*this)({path}, false, 2);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->kind, Protection::Kind::kNextParity);
  next = (*this)({known(0.02)}, false, 1);
  ASSERT_TRUE(next) << "even with nothing else to protect";
  EXPECT_EQ(next->kind, Protection::Kind::kNextParity);
}

TEST_F(AdaptiveTest, TakesTheTurnOfAFlowThatHasEndedOnly) {
  EXPECT_TRUE(policy.takesTurns());
  RecoveryPath path = known(0.02, 5);
  path.lastSent = kNow;
  EXPECT_EQ(notBefore({path}, true, 0, RecoveryChance::kTurn), kNow);
  EXPECT_TRUE(choose(policy, {path}, true, 0, RecoveryChance::kTurn));
  EXPECT_EQ(notBefore({path}, false, 0, RecoveryChance::kTurn), kNow + 5ms);
}

// ---- what

TEST_F(AdaptiveTest, OneBlockOverThePacketsOfAllPaths) {
  auto p = (*this)({known(0.02, 5), known(0.02, 7), known(0)});
  ASSERT_TRUE(p);
  EXPECT_EQ(p->kind, Protection::Kind::kNewBlock);
  EXPECT_EQ(p->of, Protection::kAllPaths);
  EXPECT_EQ(p->symbols, 12u);
  EXPECT_EQ(p->parities, Adaptive::paritiesFor(12 * 0.02, 1, 16));
  EXPECT_EQ(p->sentUntil, kNever);
}

TEST_F(AdaptiveTest, ASinglePacketIsCopied) {
  auto p = (*this)({known(0), known(0.02, 1)});
  ASSERT_TRUE(p);
  EXPECT_EQ(p->kind, Protection::Kind::kCopy);
  EXPECT_EQ(p->of, 1u);
  EXPECT_EQ(p->on, 0u);
  EXPECT_TRUE(p->uncoded) << "not one that is in a block already";
}

TEST_F(AdaptiveTest, NothingForPacketsThatAreNextToCertainToArrive) {
  EXPECT_FALSE((*this)({known(0.00005, 10)}));
  EXPECT_TRUE((*this)({known(0.0005, 10)}));
}

TEST_F(AdaptiveTest, KMaxBoundsTheBlockAndItsLosses) {
  Adaptive small({.kMax = 10});
  auto p = choose(small, {known(0.02, 8), known(0.02, 12)});
  ASSERT_TRUE(p);
  EXPECT_EQ(p->symbols, 10u);
  EXPECT_EQ(p->parities, Adaptive::paritiesFor(10 * 0.02, 1, 16));
}

TEST_F(AdaptiveTest, NoMoreParitiesThanSymbols) {
  auto p = (*this)({known(0), known(0.9, 2)});
  ASSERT_TRUE(p);
  EXPECT_EQ(p->parities, 2u);
}

TEST_F(AdaptiveTest, BurstsOfThePathsThatLoseCount) {
  size_t single = (*this)({known(0), known(0.02, 20)})->parities;
  size_t bursts = (*this)({known(0), known(0.02, 20, 40ms, 4)})->parities;
  EXPECT_EQ(bursts, Adaptive::paritiesFor(0.4, 4, 16));
  EXPECT_GT(bursts, single);
}

TEST_F(AdaptiveTest, MoreParitiesWhereParitiesAreLost) {
  double expected = 20 * 0.2;
  size_t m = Adaptive::paritiesFor(expected, 1, 16);
  ASSERT_LT(m, 16u);
  size_t more = std::lround(static_cast<double>(m) * 0.2);
  ASSERT_GT(more, 0u);
  EXPECT_EQ((*this)({known(0.2, 20)})->parities, std::min<size_t>(16, m + more));
}

// CoFUSO section 4.2.1: decoding takes less than RTT/4, here of the slowest path.
TEST_F(AdaptiveTest, DecodeTimeBoundsTheParities) {
  RecoveryOptions options;
  for (size_t i = 0; i < options.decodeTime.size(); ++i) options.decodeTime[i] = (i + 1) * 1ms;
  Adaptive bounded(options);
  auto parities = [&](Duration srtt) {
    return choose(bounded, {known(0), known(0.3, 30, srtt)})->parities;
  };
  EXPECT_EQ(parities(400ms), 16u);
  EXPECT_EQ(parities(40ms), 9u) << "10 ms is a quarter";
  EXPECT_EQ(parities(1ms), 1u);
}

// ---- where

TEST_F(AdaptiveTest, OnThePathThatDeliversFirst) {
  EXPECT_EQ((*this)({known(0.02, 5, 40ms), known(0.02, 0, 20ms)})->on, 1u);
  EXPECT_EQ((*this)({known(0.02, 5, 40ms), known(0.02, 0, 60ms)})->on, 0u);
}

TEST_F(AdaptiveTest, ALossCostsTheSlowestRoundTrip) {
  // 10 ms + 2 * 0.3 * 40 ms against 20 ms + 2 * 0.01 * 40 ms.
  EXPECT_EQ((*this)({known(0.3, 0, 20ms), known(0.01, 5, 40ms)})->on, 1u);
  EXPECT_EQ((*this)({known(0.1, 0, 20ms), known(0.01, 5, 40ms)})->on, 0u);
}

TEST_F(AdaptiveTest, NotBehindTheBurstThatItIsToMend) {
  EXPECT_EQ((*this)({known(0.02, 5, 40ms, 4), known(0.02, 0, 60ms)})->on, 1u);
  EXPECT_EQ((*this)({known(0.02, 5, 40ms, 1), known(0.02, 0, 60ms)})->on, 0u);
  EXPECT_EQ((*this)({known(0.02, 5, 40ms, 4)})->on, 0u) << "where there is no other";
}

TEST_F(AdaptiveTest, OnlyOnAnOpenPath) {
  std::vector<RecoveryPath> paths{known(0.02, 5, 40ms), known(0.02, 0, 20ms)};
  paths[1].open = false;
  EXPECT_EQ((*this)(paths)->on, 0u);
  paths[0].open = false;
  EXPECT_FALSE((*this)(paths));
  EXPECT_FALSE((*this)(paths, true, 3));
}

TEST_F(AdaptiveTest, APathThatIsNotUsableIsProtectedAllTheSame) {
  std::vector<RecoveryPath> paths{known(0.02, 5), known(0.02)};
  paths[0].usable = paths[0].open = false;
  auto p = (*this)(paths);
  ASSERT_TRUE(p);
  EXPECT_EQ(p->symbols, 5u);
  EXPECT_EQ(p->on, 1u);
}

TEST_F(AdaptiveTest, RepairsWhereTheyArriveFirst) {
  EXPECT_EQ(policy.repairPlace(), RepairPlace::kBestPath);
  EXPECT_EQ(policy.duplication(), Duplication::kNone);
}

}  // namespace
}  // namespace braid::adaptive_test
