#include "scheduler/recovery/rivals/gentle_aggression.h"

#include <gtest/gtest.h>

#include <vector>

namespace braid::corrective_test {
namespace {

/// An open path with an RTT of 80 ms: bins of 20 ms, parities 20 ms later.
RecoveryPath path(size_t uncoded, Duration oldest, Duration newest) {
  return {.usable = true,
          .open = true,
          .srtt = 80ms,
          .window = 14'000,
          .sent = 100,
          .uncoded = uncoded,
          .unacked = uncoded,
          .newestSent = Time{newest},
          .oldestUncoded = Time{oldest}};
}

class CorrectiveTest : public ::testing::Test {
 protected:
  std::optional<Protection> at(Duration now, const std::vector<RecoveryPath>& paths) {
    return policy_.choose({.paths = paths, .now = Time{now}});
  }

  Corrective policy_{RecoveryOptions{}};
};

// Packets sent at 1000..1015 ms: the bin closes at 1020 ms, its parity is sent at 1040 ms.
TEST_F(CorrectiveTest, OneParityOverABinAQuarterRttAfterItClosed) {
  const std::vector<RecoveryPath> paths{path(4, 1000ms, 1015ms)};
  EXPECT_FALSE(at(1015ms, paths));
  EXPECT_EQ(policy_.nextDeadline(), Time{1040ms});
  EXPECT_FALSE(at(1040ms - 1ns, paths));
  const auto block = at(1040ms, paths);
  ASSERT_TRUE(block);
  EXPECT_EQ(block->kind, Protection::Kind::kNewBlock);
  EXPECT_EQ(block->symbols, 4u);
  EXPECT_EQ(block->parities, 1u);
  EXPECT_EQ(block->of, 0u);
  EXPECT_EQ(block->on, 0u);
}

TEST_F(CorrectiveTest, PacketsOfTheNextBinAreLeftOut) {
  const auto block = at(1040ms, {path(9, 1000ms, 1035ms)});
  ASSERT_TRUE(block);
  EXPECT_EQ(block->sentUntil, Time{1020ms});
}

TEST_F(CorrectiveTest, NextBinBeginsWithTheOldestUncodedPacket) {
  EXPECT_FALSE(at(1040ms, {path(5, 1021ms, 1035ms)}));
  EXPECT_EQ(policy_.nextDeadline(), Time{1061ms});
}

// 16 packets sent at once at 1000 ms: their bin is full, so the parity is sent at 1020 ms.
TEST_F(CorrectiveTest, SixteenPacketsCloseTheBin) {
  const std::vector<RecoveryPath> paths{path(16, 1000ms, 1000ms)};
  EXPECT_FALSE(at(1000ms, paths));
  EXPECT_EQ(policy_.nextDeadline(), Time{1020ms});
  const auto block = at(1020ms, paths);
  ASSERT_TRUE(block);
  EXPECT_EQ(block->symbols, 16u);
  EXPECT_EQ(block->sentUntil, Time{1000ms});
}

TEST_F(CorrectiveTest, FifteenDoNot) {
  EXPECT_FALSE(at(1020ms, {path(15, 1000ms, 1000ms)}));
  EXPECT_EQ(policy_.nextDeadline(), Time{1040ms});
}

TEST_F(CorrectiveTest, BlockHasSixteenPacketsAtMost) {
  const auto first = at(1020ms, {path(40, 1000ms, 1000ms)});
  ASSERT_TRUE(first);
  EXPECT_EQ(first->symbols, 16u);
  const auto second = at(1020ms, {path(24, 1000ms, 1000ms)});
  ASSERT_TRUE(second);
  EXPECT_EQ(second->symbols, 16u);
  EXPECT_FALSE(at(1020ms, {path(8, 1000ms, 1000ms)})) << "the rest waits for its bin to close";
  EXPECT_EQ(at(1040ms, {path(8, 1000ms, 1000ms)})->symbols, 8u);
}

TEST_F(CorrectiveTest, FullBinClosesNoLaterThanAnyOther) {
  const std::vector<RecoveryPath> paths{path(50, 1000ms, 1100ms)};
  EXPECT_FALSE(at(1039ms, paths));
  EXPECT_EQ(policy_.nextDeadline(), Time{1040ms});
  EXPECT_EQ(at(1040ms, paths)->sentUntil, Time{1020ms});
}

TEST_F(CorrectiveTest, BlockIsNoLargerThanKMax) {
  Corrective policy{{.kMax = 5}};
  const std::vector<RecoveryPath> paths{path(5, 1000ms, 1000ms)};
  const auto block = policy.choose({.paths = paths, .now = Time{1020ms}});
  ASSERT_TRUE(block) << "a bin of five is full";
  EXPECT_EQ(block->symbols, 5u);
}

TEST_F(CorrectiveTest, NothingWhenAllIsCodedOrAcked) {
  EXPECT_FALSE(at(9000ms, {path(0, 1000ms, 1000ms)}));
  EXPECT_EQ(policy_.nextDeadline(), kNever);
}

TEST_F(CorrectiveTest, DeadlineGoesWhenAllIsAcked) {
  at(1000ms, {path(4, 1000ms, 1000ms)});
  at(1010ms, {path(0, 1000ms, 1000ms)});
  EXPECT_EQ(policy_.nextDeadline(), kNever);
}

TEST_F(CorrectiveTest, EachPathHasItsOwnBins) {
  RecoveryPath fast = path(2, 1000ms, 1000ms);
  fast.srtt = 8ms;  // bin until 1002, parity at 1004
  const std::vector<RecoveryPath> paths{path(2, 1000ms, 1000ms), fast};
  EXPECT_FALSE(at(1000ms, paths));
  EXPECT_EQ(policy_.nextDeadline(), Time{1004ms});
  const auto block = at(1004ms, paths);
  ASSERT_TRUE(block);
  EXPECT_EQ(block->of, 1u);
  EXPECT_EQ(block->on, 1u);
  EXPECT_EQ(block->sentUntil, Time{1002ms});
  EXPECT_EQ(policy_.nextDeadline(), Time{1040ms});
}

TEST_F(CorrectiveTest, OfPathsThatAreDueTheFirstGoesFirst) {
  std::vector<RecoveryPath> paths{path(0, 1000ms, 1000ms), path(3, 1000ms, 1000ms),
                                  path(2, 990ms, 990ms)};
  EXPECT_EQ(at(1040ms, paths)->of, 1u);
  paths[1].uncoded = 0;  // the block above holds them
  EXPECT_EQ(at(1040ms, paths)->of, 2u);
}

TEST_F(CorrectiveTest, OnlyWhenThereIsNothingNewToSend) {
  const std::vector<RecoveryPath> paths{path(4, 1000ms, 1015ms)};
  EXPECT_FALSE(policy_.choose({.chance = RecoveryChance::kTurn, .paths = paths, .now = Time{2s}}));
  EXPECT_TRUE(at(2000ms, paths)) << "late is better than never";
}

TEST_F(CorrectiveTest, FullWindowKeepsTheParityBackWithoutADeadline) {
  std::vector<RecoveryPath> paths{path(4, 1000ms, 1015ms)};
  paths[0].open = false;
  EXPECT_FALSE(at(1040ms, paths));
  EXPECT_EQ(policy_.nextDeadline(), kNever) << "a deadline that is past would keep the driver busy";
  paths[0].open = true;
  EXPECT_TRUE(at(1050ms, paths));
}

TEST_F(CorrectiveTest, AParityThatWaitsForThePacerGoesWhenItOpens) {
  std::vector<RecoveryPath> paths{path(4, 1000ms, 1015ms)};
  paths[0].open = false;
  paths[0].opensAt = Time{1047ms};
  EXPECT_FALSE(at(1040ms, paths));
  EXPECT_EQ(policy_.nextDeadline(), Time{1047ms});
}

TEST_F(CorrectiveTest, NoBinsWithoutAnRtt) {
  std::vector<RecoveryPath> paths{path(4, 1000ms, 1015ms)};
  paths[0].srtt = 0ms;
  EXPECT_FALSE(at(9000ms, paths));
  EXPECT_EQ(policy_.nextDeadline(), kNever);
}

}  // namespace
}  // namespace braid::corrective_test
