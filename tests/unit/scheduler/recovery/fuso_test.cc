#include "scheduler/recovery/fuso.h"

#include <gtest/gtest.h>

#include <vector>

namespace braid::fuso_test {
namespace {

constexpr uint64_t kWindow = 14'000;

/// An open path with 100 packets sent and none lost.
RecoveryPath clean(Duration srtt, size_t uncopied = 0) {
  return {.usable = true,
          .open = true,
          .srtt = srtt,
          .window = kWindow,
          .sent = 100,
          .uncopied = uncopied};
}

/// An open path with losses. C_l = 0.5 * lost/100 + 0.5 * 1/sinceLoss.
RecoveryPath lossy(uint64_t lost, uint64_t sinceLoss, Duration srtt, size_t uncopied = 0) {
  RecoveryPath path = clean(srtt, uncopied);
  path.lost = lost;
  path.sinceLoss = sinceLoss;
  return path;
}

RecoveryPath closed(RecoveryPath path) {
  path.open = false;
  path.inFlight = path.window;
  return path;
}

RecoveryPath unused(Duration srtt) {
  RecoveryPath path = clean(srtt);
  path.sent = 0;
  return path;
}

class FusoTest : public ::testing::Test {
 protected:
  std::optional<Protection> choose(const std::vector<RecoveryPath>& paths) {
    return policy_.choose({.paths = paths, .now = Time{1s}});
  }
  size_t worst(const std::vector<RecoveryPath>& paths) {
    const auto protection = choose(paths);
    return protection ? protection->of : SIZE_MAX;
  }
  size_t best(const std::vector<RecoveryPath>& paths) {
    const auto protection = choose(paths);
    return protection ? protection->on : SIZE_MAX;
  }

  Fuso policy_{RecoveryOptions{}, 1};
};

TEST_F(FusoTest, CopiesFromTheWorstPathToTheBest) {
  const auto protection = choose({clean(10ms, 3), lossy(2, 10, 10ms, 3)});
  ASSERT_TRUE(protection);
  EXPECT_EQ(protection->kind, Protection::Kind::kCopy);
  EXPECT_EQ(protection->of, 1u);
  EXPECT_EQ(protection->on, 0u);
}

TEST_F(FusoTest, OnlyWhenThereIsNothingNewToSend) {
  const std::vector<RecoveryPath> paths{clean(10ms, 3)};
  EXPECT_FALSE(policy_.choose({.chance = RecoveryChance::kTurn, .paths = paths, .now = Time{}}));
  EXPECT_FALSE(policy_.takesTurns());
  EXPECT_EQ(policy_.nextDeadline(), kNever);
}

TEST_F(FusoTest, NothingWithoutPaths) {
  EXPECT_FALSE(choose({}));
}

// BytesInFlight_Total < CWND_Total: path 1 is 6000 bytes above its window (it shrank), path 0 has
// 6000 free.
TEST_F(FusoTest, BytesInFlightOfAllPathsStayBelowTheTotalWindow) {
  std::vector<RecoveryPath> paths{clean(10ms, 3), closed(clean(10ms, 3))};
  paths[0].inFlight = kWindow - 6000;
  paths[1].inFlight = kWindow + 6000;
  EXPECT_FALSE(choose(paths));
  paths[1].inFlight -= 1;
  EXPECT_TRUE(choose(paths));
}

TEST_F(FusoTest, PathsThatAreNotUsableDoNotCountInTheTotals) {
  std::vector<RecoveryPath> paths{clean(10ms, 3), clean(10ms)};
  paths[1].usable = paths[1].open = false;
  paths[1].inFlight = 0;
  paths[0].inFlight = kWindow;
  EXPECT_FALSE(choose(paths)) << "the window of path 1 is no spare window";
  paths[0].inFlight = 0;
  paths[1].inFlight = 10 * kWindow;
  EXPECT_TRUE(choose(paths)) << "what was in flight on path 1 takes no window";
}

// C_l 0.5 * 0.02 + 0.5 * 0.1 = 0.06 against 0.5 * 0.10 + 0.5 * 0.01 = 0.055.
TEST_F(FusoTest, WorstHasTheLargestMetric) {
  EXPECT_EQ(worst({clean(10ms, 1), lossy(2, 10, 10ms, 1), lossy(10, 100, 10ms, 1)}), 1u);
}

// The same paths by overall loss only: 0.02 against 0.10; by the last loss only: 0.1 against 0.01.
TEST_F(FusoTest, WeightsAreSettings) {
  const std::vector<RecoveryPath> paths{lossy(2, 10, 10ms, 1), lossy(10, 100, 10ms, 1)};
  EXPECT_EQ(Fuso({.alpha = 1, .beta = 0}, 1).choose({.paths = paths, .now = Time{}})->of, 1u);
  EXPECT_EQ(Fuso({.alpha = 0, .beta = 1}, 1).choose({.paths = paths, .now = Time{}})->of, 0u);
}

TEST_F(FusoTest, WorstHasSomethingThatWasNotCopied) {
  EXPECT_EQ(worst({lossy(50, 1, 10ms, 0), clean(10ms, 0), lossy(1, 100, 10ms, 1)}), 2u);
}

TEST_F(FusoTest, NothingWhenAllIsCopied) {
  EXPECT_FALSE(choose({lossy(50, 1, 10ms, 0), clean(10ms, 0)}));
}

TEST_F(FusoTest, WithoutLossesTheLargestRttIsWorst) {
  EXPECT_EQ(worst({clean(10ms, 1), clean(30ms, 1), clean(20ms, 1)}), 1u);
}

TEST_F(FusoTest, RttOfPathsWithNothingToProtectDoesNotMatter) {
  EXPECT_EQ(worst({clean(10ms, 1), clean(30ms, 0), clean(20ms, 1)}), 2u);
}

// C_l 0.5 * 0.01 + 0.5 * 0.01 = 0.01 beats any RTT.
TEST_F(FusoTest, AnyLossIsWorseThanALargerRtt) {
  EXPECT_EQ(worst({clean(500ms, 1), lossy(1, 100, 1ms, 1)}), 1u);
}

// "All C_l equal 0" refers only to candidates; the lossy path has nothing to protect.
TEST_F(FusoTest, LossyPathWithNothingToProtectLeavesTheChoiceToRtt) {
  EXPECT_EQ(worst({clean(10ms, 1), lossy(5, 5, 50ms, 0), clean(20ms, 1)}), 2u);
}

TEST_F(FusoTest, EqualMetricsOtherThanZeroGoToTheFirstWorstWhateverTheRtt) {
  EXPECT_EQ(worst({lossy(2, 10, 10ms, 1), lossy(2, 10, 90ms, 1)}), 0u);
}

TEST_F(FusoTest, EqualRttsWithoutLossGoToTheFirstWorst) {
  EXPECT_EQ(worst({clean(20ms, 0), clean(20ms, 1), clean(20ms, 1)}), 1u);
}

TEST_F(FusoTest, PathWithoutAnRttIsWorstLast) {
  EXPECT_EQ(worst({clean(0ms, 1), clean(1ms, 1)}), 1u);
  EXPECT_EQ(worst({clean(0ms, 1), clean(1ms, 0)}), 0u);
}

TEST_F(FusoTest, SuspectPathMayBeWorst) {
  std::vector<RecoveryPath> paths{clean(10ms, 1), lossy(2, 10, 10ms, 1)};
  paths[1].usable = paths[1].open = false;
  EXPECT_EQ(worst(paths), 1u);
}

// C_l 0.055 against 0.06.
TEST_F(FusoTest, BestHasTheSmallestMetric) {
  EXPECT_EQ(best({lossy(2, 10, 10ms, 1), lossy(10, 100, 90ms, 1)}), 1u);
}

TEST_F(FusoTest, BestNeverLostAnythingBeforeAnyThatDid) {
  EXPECT_EQ(best({lossy(1, 100, 1ms, 1), clean(500ms, 1)}), 1u);
}

TEST_F(FusoTest, AmongPathsWithoutLossTheSmallestRttIsBest) {
  EXPECT_EQ(best({clean(30ms, 1), clean(10ms), clean(20ms)}), 1u);
}

TEST_F(FusoTest, BestIsOpen) {
  EXPECT_EQ(best({clean(30ms, 1), closed(clean(10ms)), clean(20ms)}), 2u);
  EXPECT_EQ(best({lossy(50, 1, 30ms, 1), closed(clean(10ms))}), 0u);
}

TEST_F(FusoTest, NothingWhenNoPathIsOpen) {
  std::vector<RecoveryPath> paths{closed(clean(10ms, 1)), closed(clean(20ms, 1))};
  paths[0].inFlight = kWindow - 100;  // some window is left, but less than a datagram
  EXPECT_FALSE(choose(paths));
}

TEST_F(FusoTest, EqualMetricsOtherThanZeroGoToTheFirstBestWhateverTheRtt) {
  EXPECT_EQ(best({lossy(2, 10, 90ms, 1), lossy(2, 10, 10ms, 1)}), 0u);
}

TEST_F(FusoTest, EqualRttsWithoutLossGoToTheFirstBest) {
  EXPECT_EQ(best({closed(clean(20ms, 1)), clean(20ms), clean(20ms)}), 1u);
}

TEST_F(FusoTest, PathWithoutAnRttIsBestAfterThoseWithOne) {
  EXPECT_EQ(best({clean(0ms, 1), clean(300ms, 1)}), 1u);
  EXPECT_EQ(best({clean(0ms, 1), lossy(1, 100, 10ms)}), 0u);
}

TEST_F(FusoTest, PathThatNeverSentAnythingComesLast) {
  EXPECT_EQ(best({unused(1ms), lossy(99, 1, 500ms, 1)}), 1u);
  EXPECT_EQ(best({lossy(99, 1, 500ms, 1), unused(1ms)}), 0u);
}

TEST_F(FusoTest, PathThatNeverSentAnythingIsBetterThanNone) {
  EXPECT_EQ(best({closed(clean(10ms, 1)), unused(1ms)}), 1u);
}

TEST_F(FusoTest, OneAtRandomWhenNoOpenPathEverSentAnything) {
  const std::vector<RecoveryPath> paths{unused(1ms), closed(clean(10ms, 1)), unused(50ms),
                                        unused(2ms)};
  std::vector<int> chosen(4);
  for (int i = 0; i < 3000; ++i) ++chosen.at(best(paths));
  EXPECT_EQ(chosen[1], 0);
  for (size_t i : {0, 2, 3}) EXPECT_NEAR(chosen[i], 1000, 150) << i;  // 5.8 standard deviations
}

TEST_F(FusoTest, TheSameSeedChoosesTheSamePaths) {
  const std::vector<RecoveryPath> paths{unused(1ms), unused(2ms), closed(clean(10ms, 1))};
  auto draw = [&](uint64_t seed) {
    Fuso policy{{}, seed};
    std::vector<size_t> chosen;
    for (int i = 0; i < 64; ++i)
      chosen.push_back(policy.choose({.paths = paths, .now = Time{}})->on);
    return chosen;
  };
  EXPECT_EQ(draw(7), draw(7));
  EXPECT_NE(draw(7), draw(8));
}

TEST_F(FusoTest, BestMayBeTheWorst) {
  const auto alone = choose({lossy(5, 5, 10ms, 2)});
  ASSERT_TRUE(alone);
  EXPECT_EQ(alone->of, 0u);
  EXPECT_EQ(alone->on, 0u);
  // Only path 1 has something to protect, and it is also the better path.
  const auto better = choose({lossy(5, 5, 10ms, 0), clean(10ms, 2)});
  EXPECT_EQ(better->of, 1u);
  EXPECT_EQ(better->on, 1u);
}

}  // namespace
}  // namespace braid::fuso_test
