#include "scheduler/recovery/cofuso.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/random.h"

namespace braid::cofuso_test {
namespace {

constexpr uint64_t kWindow = 14'000;
using Kind = Protection::Kind;

/// An open path with an RTT of 50 ms, 100 packets sent and none lost; `uncoded` unacknowledged
/// packets, none of them protected.
RecoveryPath clean(size_t uncoded = 0, Duration srtt = 50ms) {
  return {.usable = true,
          .open = true,
          .srtt = srtt,
          .window = kWindow,
          .sent = 100,
          .uncopied = uncoded,
          .uncoded = uncoded};
}

/// A path with L = percent / 100 by the default weights; both loss rates have this value.
RecoveryPath lossy(uint64_t percent, size_t uncoded = 0, Duration srtt = 50ms) {
  RecoveryPath path = clean(uncoded, srtt);
  path.sent = 100 * percent;
  path.lost = percent * percent;
  path.sinceLoss = 100 / percent;
  return path;
}

RecoveryPath closed(RecoveryPath path) {
  path.open = false;
  path.inFlight = path.window;
  return path;
}

/// All of its packets are in blocks; `uncopied` of them were not copied.
RecoveryPath coded(RecoveryPath path, size_t uncopied) {
  path.uncoded = 0;
  path.uncopied = uncopied;
  return path;
}

std::optional<Protection> choose(const std::vector<RecoveryPath>& paths,
                                 const RecoveryOptions& options = {}, size_t paritiesLeft = 0) {
  return CoFuso{options, 1}.choose({.paths = paths, .now = Time{1s}, .paritiesLeft = paritiesLeft});
}

/// "K+M" of the block over the only path, or the name of another choice.
std::string block(const RecoveryPath& path, const RecoveryOptions& options = {}) {
  const auto protection = choose({path}, options);
  if (!protection) return "nothing";
  if (protection->kind != Kind::kNewBlock) return "no block";
  return std::to_string(protection->symbols) + "+" + std::to_string(protection->parities);
}

// Section 6.1.1: three cold subflows with windows of ten, 29 packets sent, one spare chance, on the
// last one.
TEST(CoFuso, TargetedDropOfSection611IsCoveredByOneParityOverTheFirstSubflow) {
  std::vector<RecoveryPath> paths{closed(clean(10)), closed(clean(10)), clean(9)};
  for (RecoveryPath& path : paths) path.sent = path.uncoded;
  const auto protection = choose(paths, {.kMax = 30, .mMax = 1});
  ASSERT_TRUE(protection);
  EXPECT_EQ(protection->kind, Kind::kNewBlock);
  EXPECT_EQ(protection->of, 0u);
  EXPECT_EQ(protection->on, 2u);
  EXPECT_EQ(protection->symbols, 10u);
  EXPECT_EQ(protection->parities, 1u);
}

TEST(CoFuso, OnlyWhenThereIsNothingNewToSend) {
  const std::vector<RecoveryPath> paths{clean(5)};
  CoFuso policy{{}, 1};
  EXPECT_FALSE(policy.choose({.chance = RecoveryChance::kTurn, .paths = paths, .now = Time{}}));
  EXPECT_FALSE(policy.choose(
      {.chance = RecoveryChance::kTurn, .paths = paths, .now = Time{}, .paritiesLeft = 1}));
  EXPECT_FALSE(policy.takesTurns());
}

TEST(CoFuso, BytesInFlightOfAllPathsStayBelowTheTotalWindow) {
  std::vector<RecoveryPath> paths{clean(5), closed(clean(5))};
  paths[0].inFlight = kWindow - 6000;
  paths[1].inFlight = kWindow + 6000;
  EXPECT_FALSE(choose(paths));
  EXPECT_FALSE(choose(paths, {}, 2)) << "no parity of the block under way either";
  paths[1].inFlight -= 1;
  EXPECT_TRUE(choose(paths));
}

TEST(CoFuso, NothingWithoutAnOpenPath) {
  EXPECT_FALSE(choose({}));
  RecoveryPath path = closed(clean(5));
  path.inFlight = 0;
  EXPECT_FALSE(choose({path}));
  EXPECT_FALSE(choose({path}, {}, 1));
}

TEST(CoFuso, NothingWhenNothingIsToProtect) {
  EXPECT_FALSE(choose({clean(0), lossy(10, 0)}));
}

// K = min(M_max/L, N_uc, K_max).
TEST(CoFuso, BlockIsAsLargeAsTheParitiesCover) {
  EXPECT_EQ(block(lossy(10, 100)), "30+3");                 // 3 / 0.1
  EXPECT_EQ(block(lossy(5, 100)), "60+3");                  // 3 / 0.05
  EXPECT_EQ(block(lossy(10, 100), {.mMax = 1}), "10+1");    // 1 / 0.1
  EXPECT_EQ(block(lossy(20, 100), {.mMax = 16}), "80+16");  // 16 / 0.2
}

// lossrate 0.16, last 1/8: L = 0.1425; 3 / 0.1425 = 21.05.
TEST(CoFuso, CoveredPacketsAreRoundedDown) {
  RecoveryPath path = clean(100);
  path.lost = 16;
  path.sinceLoss = 8;
  EXPECT_EQ(block(path), "21+3");  // 21 * 0.1425 = 2.99
}

TEST(CoFuso, BlockIsNoLargerThanWhatIsUncoded) {
  EXPECT_EQ(block(lossy(10, 29)), "29+3");  // 2.9
}

TEST(CoFuso, BlockIsNoLargerThanKMax) {
  EXPECT_EQ(block(lossy(2, 128)), "128+3");               // of 150; 2.56
  EXPECT_EQ(block(lossy(2, 128), {.kMax = 40}), "40+1");  // 0.8
}

// M = K * L, rounded up: at 10 %.
TEST(CoFuso, ParitiesAreTheExpectedLossesRoundedUp) {
  EXPECT_EQ(block(lossy(10, 1)), "1+1");
  EXPECT_EQ(block(lossy(10, 10)), "10+1");
  EXPECT_EQ(block(lossy(10, 11)), "11+2");
  EXPECT_EQ(block(lossy(10, 20)), "20+2");
  EXPECT_EQ(block(lossy(10, 21)), "21+3");
}

// 14 of 100 lost: in doubles 7 / 0.14 is 49.99999999999999.
TEST(CoFuso, RoundingErrorsOfDoublesCostNoPacket) {
  RecoveryPath path = clean(100);
  path.lost = 14;
  path.sinceLoss = 1;
  EXPECT_EQ(block(path, {.alpha1 = 1, .beta1 = 0, .mMax = 7}), "50+7");
}

// 14 of 200 lost: in doubles 100 * 0.07 is 7.000000000000001.
TEST(CoFuso, RoundingErrorsOfDoublesMakeNoParity) {
  RecoveryPath path = clean(100);
  path.sent = 200;
  path.lost = 14;
  path.sinceLoss = 1;
  EXPECT_EQ(block(path, {.alpha1 = 1, .beta1 = 0, .mMax = 16}), "100+7");
}

TEST(CoFuso, WithoutLossOneParityCoversAllThatIsUncoded) {
  EXPECT_EQ(block(clean(10)), "10+1");
  EXPECT_EQ(block(clean(128)), "128+1");
  EXPECT_EQ(block(clean(100), {.kMax = 30}), "30+1");
  EXPECT_EQ(block(clean(1)), "1+1");
}

// L = 0.5 * 1 + 0.5 * 1 = 1: as many parities as packets.
TEST(CoFuso, OnAPathThatLosesAllEachPacketHasAParity) {
  RecoveryPath path = clean(10);
  path.lost = path.sent;
  path.sinceLoss = 1;
  EXPECT_EQ(block(path), "3+3");
  path.uncoded = 2;
  EXPECT_EQ(block(path), "2+2");
}

TEST(CoFuso, LossRateCountsAsAtMostOneWhateverTheWeights) {
  RecoveryPath path = clean(10);
  path.lost = path.sent;
  path.sinceLoss = 1;
  EXPECT_EQ(block(path, {.alpha1 = 5, .beta1 = 5}), "3+3");
}

// lossrate 0.1, last 1/50. Testbed weights (section 5.2): 0.05 * 0.1 + 0.95 * 0.02 = 0.024: 1/L
// = 41.7.
TEST(CoFuso, WeightsOfTheLossRateAreSettings) {
  RecoveryPath path = clean(100);
  path.lost = 10;
  path.sinceLoss = 50;
  EXPECT_EQ(block(path, {.alpha1 = 0.05, .beta1 = 0.95, .mMax = 1}), "41+1");
  EXPECT_EQ(block(path, {.alpha1 = 1, .beta1 = 0, .mMax = 1}), "10+1");
}

// The fixed coding rate with which section 6.2.4 compares the dynamic one.
TEST(CoFuso, AFixedCodingRateTakesThePlaceOfTheLossRate) {
  for (const RecoveryPath& path : {clean(40), lossy(10, 40)}) {
    EXPECT_EQ(block(path, {.codingRate = 0.01}), "40+1");
    EXPECT_EQ(block(path, {.codingRate = 0.16}), "18+3");
    EXPECT_EQ(block(path, {.codingRate = 0.32}), "9+3");
  }
  EXPECT_EQ(block(clean(5), {.codingRate = 0.32}), "5+2");
}

// Restoring 1, 2, 3 takes 5, 10, 15 ms. RTT/4 is 12.5 ms: M_max is 2.
TEST(CoFuso, MostParitiesFollowDecodeTimeAndTheRttOfTheWorstPath) {
  const RecoveryOptions options{.decodeTime = {5ms, 10ms, 15ms}};
  EXPECT_EQ(block(lossy(10, 100, 50ms), options), "20+2");
  EXPECT_EQ(block(lossy(10, 100, 100ms), options), "30+3");
  EXPECT_EQ(block(lossy(10, 100, 1ms), options), "10+1");
  const auto protection = choose({lossy(10, 100, 50ms), clean(0, 1ms)}, options);
  EXPECT_EQ(protection->on, 1u);
  EXPECT_EQ(protection->parities, 2u) << "the RTT of the best path does not count";
}

TEST(CoFuso, BlockOfOnePacketIsAParityNotACopy) {
  EXPECT_EQ(block(clean(1)), "1+1");
}

TEST(CoFuso, BlockUnderWayGoesOnOnTheBestPath) {
  const auto protection = choose({lossy(10, 50), clean(10)}, {}, 2);
  ASSERT_TRUE(protection);
  EXPECT_EQ(protection->kind, Kind::kNextParity);
  EXPECT_EQ(protection->on, 1u);
}

TEST(CoFuso, BlockUnderWayGoesOnThoughNothingElseIsToProtect) {
  const auto protection = choose({coded(lossy(10), 0), clean()}, {}, 1);
  ASSERT_TRUE(protection);
  EXPECT_EQ(protection->kind, Kind::kNextParity);
  EXPECT_EQ(protection->on, 1u);
}

TEST(CoFuso, NextBlockBeginsWhenTheParitiesAreSent) {
  EXPECT_EQ(choose({lossy(10, 50)}, {}, 0)->kind, Kind::kNewBlock);
}

TEST(CoFuso, FallsBackToCopiesWhenTheWorstPathHasNothingUncoded) {
  const auto protection = choose({coded(lossy(10), 30), clean()});
  ASSERT_TRUE(protection);
  EXPECT_EQ(protection->kind, Kind::kCopy);
  EXPECT_EQ(protection->of, 0u);
  EXPECT_EQ(protection->on, 1u);
}

// Algorithm 2 looks at the worst path only; another's uncoded packets wait until it is the worst.
TEST(CoFuso, CopiesOfTheWorstPathComeBeforeBlocksOfBetterOnes) {
  const auto protection = choose({clean(10), coded(lossy(10), 1)});
  EXPECT_EQ(protection->kind, Kind::kCopy);
  EXPECT_EQ(protection->of, 1u);
  const auto next = choose({clean(10), coded(lossy(10), 0)});
  EXPECT_EQ(next->kind, Kind::kNewBlock);
  EXPECT_EQ(next->of, 0u);
}

// L/max(L): 0.5 and 1. RTT/max(RTT): 1 and 0.2. Sums of halves: 0.75 and 0.6.
TEST(CoFuso, WorstHasTheLargestSumOfNormalisedLossAndRtt) {
  const std::vector<RecoveryPath> paths{lossy(5, 1, 100ms), lossy(10, 1, 20ms)};
  EXPECT_EQ(choose(paths)->of, 0u);
  // Weights 0.8 and 0.2: 0.4 + 0.2 = 0.6 against 0.8 + 0.04 = 0.84.
  EXPECT_EQ(choose(paths, {.alpha2 = 0.8, .beta2 = 0.2})->of, 1u);
}

// 0.5 * (1 + 0.6) = 0.8, 0.5 * (0.5 + 1) = 0.75, 0.5 * (0.5 + 0.9) = 0.7.
TEST(CoFuso, BestHasTheSmallestSumOfNormalisedLossAndRtt) {
  EXPECT_EQ(choose({lossy(10, 1, 60ms), lossy(5, 1, 100ms), lossy(5, 1, 90ms)})->on, 2u);
}

// Unlike FUSO: a slow path that never lost anything (0 + 0.5) is worse than a fast lossy one (0.2 +
// 0.05).
TEST(CoFuso, SmallLossDoesNotOutweighAMuchLargerRtt) {
  const std::vector<RecoveryPath> paths{lossy(10, 0, 50ms), clean(1, 500ms), lossy(4, 1, 50ms)};
  EXPECT_EQ(choose(paths)->of, 1u);
  EXPECT_EQ(choose(paths)->on, 2u);
}

TEST(CoFuso, WithoutLossesRttAloneDecides) {
  const auto protection = choose({clean(1, 30ms), clean(1, 60ms), clean(1, 10ms)});
  EXPECT_EQ(protection->of, 1u);
  EXPECT_EQ(protection->on, 2u);
}

// Paths 0 and 1 as above, 0.75 and 0.6. A third with RTT 400 ms and nothing to protect makes it
// 0.5 * (0.5 + 0.25) = 0.375 and 0.5 * (1 + 0.05) = 0.525: the other one is worst.
TEST(CoFuso, NormalisesOverAllUsablePaths) {
  std::vector<RecoveryPath> paths{lossy(5, 1, 100ms), lossy(10, 1, 20ms), clean(0, 400ms)};
  EXPECT_EQ(choose(paths)->of, 1u);
  paths[2].usable = paths[2].open = false;
  EXPECT_EQ(choose(paths)->of, 0u) << "a path that is gone does not count";
  paths[2].uncopied = 1;
  EXPECT_EQ(choose(paths)->of, 1u) << "0.5 * (0 + 1) is less than 0.525";
}

TEST(CoFuso, SuspectPathMayBeWorst) {
  std::vector<RecoveryPath> paths{clean(1), lossy(10, 1)};
  paths[1].usable = paths[1].open = false;
  EXPECT_EQ(choose(paths)->of, 1u);
}

TEST(CoFuso, EqualSumsGoToTheFirst) {
  const auto protection = choose({closed(clean(0)), clean(3), clean(3)});
  EXPECT_EQ(protection->of, 1u);
  EXPECT_EQ(protection->on, 1u);
}

TEST(CoFuso, PathWithoutAnRttCountsAsTheSlowest) {
  const auto protection = choose({clean(1, 30ms), clean(1, 0ms), clean(1, 10ms)});
  EXPECT_EQ(protection->of, 0u) << "as slow as path 0, which is first";
  EXPECT_EQ(choose({closed(clean(1, 30ms)), clean(1, 0ms), clean(0, 29ms)})->on, 2u);
  EXPECT_EQ(choose({clean(1, 0ms)})->of, 0u) << "no RTT at all";
}

TEST(CoFuso, PathThatNeverSentAnythingIsBestLastAsInFuso) {
  RecoveryPath unused = clean(0, 1ms);
  unused.sent = 0;
  EXPECT_EQ(choose({unused, lossy(50, 1, 500ms)})->on, 1u);
  EXPECT_EQ(choose({unused, closed(lossy(50, 1, 500ms))})->on, 0u);
}

TEST(CoFuso, BestMayBeTheWorst) {
  const auto protection = choose({lossy(10, 20)});
  EXPECT_EQ(protection->of, 0u);
  EXPECT_EQ(protection->on, 0u);
}

// For any numbers, the block must be one that Algorithm 2 allows.
TEST(CoFuso, BlocksKeepTheirBoundsForRandomPaths) {
  for (uint64_t seed = 1; seed <= 20'000; ++seed) {
    Random random{seed};
    RecoveryPath path = clean(1 + random.below(128));
    path.sent = 1 + random.below(1'000'000);
    path.lost = random.below(path.sent + 1);
    path.sinceLoss = path.lost == 0 ? 0 : 1 + random.below(path.sent);
    const RecoveryOptions options{.alpha1 = random.uniform(),
                                  .beta1 = random.uniform(),
                                  .kMax = 1 + random.below(128),
                                  .mMax = 1 + random.below(16)};
    path.uncoded = std::min(path.uncoded, options.kMax);
    const auto protection = choose({path}, options);
    ASSERT_TRUE(protection) << "seed " << seed;
    const double loss = std::min(1.0, lossMetric(path, options.alpha1, options.beta1));
    const double k = static_cast<double>(protection->symbols);
    const double m = static_cast<double>(protection->parities);
    ASSERT_GE(protection->symbols, 1u) << "seed " << seed;
    ASSERT_LE(protection->symbols, path.uncoded) << "seed " << seed;
    ASSERT_LE(protection->parities, options.mMax) << "seed " << seed;
    ASSERT_GE(m, std::max(1.0, k * loss - 1e-6)) << "seed " << seed;
    ASSERT_LT(m, std::max(1.0, k * loss) + 1) << "seed " << seed;
    // Either one more packet could not be covered, or there is none.
    if (protection->symbols < path.uncoded) {
      ASSERT_GT((k + 1) * loss, static_cast<double>(options.mMax) - 1e-6) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace braid::cofuso_test
