#include "scheduler/recovery/rivals/gentle_aggression.h"

#include <gtest/gtest.h>

#include <vector>

namespace braid::reactive_test {
namespace {

/// An open path with an RTT of 50 ms, which counts as silent when its newest packet, sent at
/// `newest`, is 100 ms old.
RecoveryPath pathAt(Duration newest, size_t unacked = 3) {
  return {.usable = true,
          .open = true,
          .srtt = 50ms,
          .window = 14'000,
          .sent = 100,
          .unacked = unacked,
          .newestSent = Time{newest}};
}

class ReactiveTest : public ::testing::Test {
 protected:
  std::optional<Protection> at(Duration now, const std::vector<RecoveryPath>& paths) {
    return policy_.choose({.paths = paths, .now = Time{now}});
  }

  Reactive policy_;
};

TEST_F(ReactiveTest, NewestPacketIsProbedOnItsPathAfterTwoRttsOfSilence) {
  const std::vector<RecoveryPath> paths{pathAt(1000ms)};
  EXPECT_FALSE(at(1000ms, paths));
  EXPECT_FALSE(at(1100ms - 1ns, paths));
  const auto probe = at(1100ms, paths);
  ASSERT_TRUE(probe);
  EXPECT_EQ(probe->kind, Protection::Kind::kNewest);
  EXPECT_EQ(probe->of, 0u);
  EXPECT_EQ(probe->on, 0u);
}

TEST_F(ReactiveTest, DeadlineIsTwoRttsAfterTheNewestPacket) {
  at(1000ms, {pathAt(1000ms)});
  EXPECT_EQ(policy_.nextDeadline(), Time{1100ms});
}

TEST_F(ReactiveTest, AnAckStartsTheWaitAnew) {
  RecoveryPath path = pathAt(1000ms);
  path.lastAcked = Time{1050ms};
  EXPECT_FALSE(at(1100ms, {path}));
  EXPECT_EQ(policy_.nextDeadline(), Time{1150ms});
  EXPECT_TRUE(at(1150ms, {path}));
}

TEST_F(ReactiveTest, NothingToProbeWhenAllIsAcked) {
  EXPECT_FALSE(at(2000ms, {pathAt(1000ms, 0)}));
  EXPECT_EQ(policy_.nextDeadline(), kNever);
}

TEST_F(ReactiveTest, DeadlineGoesWhenAllIsAcked) {
  at(1000ms, {pathAt(1000ms)});
  at(1050ms, {pathAt(1000ms, 0)});
  EXPECT_EQ(policy_.nextDeadline(), kNever);
}

TEST_F(ReactiveTest, OneProbePerEpisode) {
  const std::vector<RecoveryPath> paths{pathAt(1000ms)};
  EXPECT_TRUE(at(1100ms, paths));
  EXPECT_FALSE(at(1100ms, paths));
  EXPECT_FALSE(at(9000ms, paths));
  EXPECT_EQ(policy_.nextDeadline(), kNever);
}

TEST_F(ReactiveTest, SomethingNewAcknowledgedBeginsAnotherEpisode) {
  RecoveryPath path = pathAt(1000ms);
  EXPECT_TRUE(at(1100ms, {path}));
  path.lastAcked = Time{1150ms};
  EXPECT_FALSE(at(1160ms, {path}));
  EXPECT_EQ(policy_.nextDeadline(), Time{1250ms});
  EXPECT_TRUE(at(1250ms, {path}));
  EXPECT_FALSE(at(1251ms, {path}));
}

TEST_F(ReactiveTest, SomethingNewSentBeginsAnotherEpisode) {
  EXPECT_TRUE(at(1100ms, {pathAt(1000ms)}));
  EXPECT_FALSE(at(1120ms, {pathAt(1110ms)}));
  EXPECT_TRUE(at(1210ms, {pathAt(1110ms)}));
}

TEST_F(ReactiveTest, EachPathHasItsOwnEpisode) {
  std::vector<RecoveryPath> paths{pathAt(1000ms), pathAt(1040ms), pathAt(1000ms)};
  EXPECT_EQ(at(1100ms, paths)->on, 0u);
  EXPECT_EQ(at(1100ms, paths)->on, 2u);
  EXPECT_FALSE(at(1100ms, paths));
  EXPECT_EQ(policy_.nextDeadline(), Time{1140ms});
  EXPECT_EQ(at(1140ms, paths)->on, 1u);
  EXPECT_FALSE(at(1140ms, paths));
}

TEST_F(ReactiveTest, EarliestPathSetsTheDeadline) {
  RecoveryPath fast = pathAt(1000ms);
  fast.srtt = 10ms;
  at(1000ms, {pathAt(1000ms), fast, pathAt(990ms)});
  EXPECT_EQ(policy_.nextDeadline(), Time{1020ms});
}

TEST_F(ReactiveTest, OnlyWhenThereIsNothingNewToSend) {
  const std::vector<RecoveryPath> paths{pathAt(1000ms)};
  EXPECT_FALSE(policy_.choose({.chance = RecoveryChance::kTurn, .paths = paths, .now = Time{2s}}));
  EXPECT_TRUE(at(2000ms, paths));
}

TEST_F(ReactiveTest, FullWindowKeepsTheProbeBackWithoutADeadline) {
  RecoveryPath path = pathAt(1000ms);
  path.open = false;
  EXPECT_FALSE(at(1100ms, {path}));
  EXPECT_EQ(policy_.nextDeadline(), kNever) << "a deadline that is past would keep the driver busy";
  path.open = true;
  EXPECT_TRUE(at(1120ms, {path}));
}

// A silent path with a full window must not hide another's deadline.
TEST_F(ReactiveTest, AProbeThatWaitsForThePacerGoesWhenItOpens) {
  RecoveryPath paced = pathAt(1000ms);
  paced.open = false;
  paced.opensAt = Time{1107ms};
  EXPECT_FALSE(at(1100ms, {paced}));
  EXPECT_EQ(policy_.nextDeadline(), Time{1107ms});
  EXPECT_FALSE(at(1100ms, {paced, pathAt(1005ms)}));
  EXPECT_EQ(policy_.nextDeadline(), Time{1105ms});
  paced.opensAt = kNever;
  EXPECT_FALSE(at(1100ms, {paced, pathAt(1005ms)}));
  EXPECT_EQ(policy_.nextDeadline(), Time{1105ms});
}

TEST_F(ReactiveTest, NoProbeWithoutAnRtt) {
  RecoveryPath path = pathAt(1000ms);
  path.srtt = 0ms;
  EXPECT_FALSE(at(9000ms, {path}));
  EXPECT_EQ(policy_.nextDeadline(), kNever);
}

TEST_F(ReactiveTest, PathsMayComeLater) {
  EXPECT_FALSE(at(900ms, {}));
  EXPECT_TRUE(at(1100ms, {pathAt(1000ms)}));
  EXPECT_EQ(at(1100ms, {pathAt(1000ms), pathAt(1000ms)})->on, 1u);
}

}  // namespace
}  // namespace braid::reactive_test
