#include "scheduler/rate/wan_detectors.h"

#include <gtest/gtest.h>

#include "tests/unit/scheduler/rate/wan_samples.h"

namespace braid::wan_competition_test {
namespace {

/// Cross traffic keeps a queue of 60 ms on a path of 100 ms.
struct WanCompetitionTest : testing::Test {
  WanCompetition c{kBytes, 10};
  PathModel path = pathOf(100ms, 160ms, 1e6);
  void SetUp() override { c.begin(150e3, path); }
  /// Rounds until the next check, including this one.
  int untilLook() {
    for (int n = 1; n < 1000; ++n) {
      if (c.isProbeDue(60ms)) return n;
    }
    return 0;
  }
  void lose(uint64_t packets, const PathModel& on) {
    WanRound round;
    round.packets = packets;
    c.onLoss(lossOf(packets, at(2s), at(2s)), round, on, static_cast<double>(c.window()));
  }
};

TEST_F(WanCompetitionTest, GoesOnWithTheWindow) {
  EXPECT_EQ(c.window(), 150'000u);
}

TEST_F(WanCompetitionTest, LooksMoreSeldomEachTime) {
  for (int rounds : {8, 16, 32, 64, 128, 256, 256}) EXPECT_EQ(untilLook(), rounds);
}

TEST_F(WanCompetitionTest, IsOverWhenAQuarterOfTheQueueIsLeft) {
  untilLook();
  EXPECT_FALSE(c.isOver(16ms));
  EXPECT_TRUE(c.isOver(15ms));
}

TEST_F(WanCompetitionTest, LossWithALongQueueIsCongestion) {
  lose(1, path);
  EXPECT_EQ(c.window(), 105'000u);
}

TEST_F(WanCompetitionTest, LossWithLessThanHalfTheLongestQueueIsNot) {
  lose(1, pathOf(100ms, 129ms, 1e6));
  EXPECT_EQ(c.window(), 150'000u);
}

TEST_F(WanCompetitionTest, TheLongestQueueIsForgotten) {
  for (int i = 0; i < 2; ++i) c.onRound(1ms);
  lose(1, pathOf(100ms, 129ms, 1e6));  // (63/64)^2 of 60 ms: 58.1
  EXPECT_EQ(c.window(), 150'000u);
  c.onRound(1ms);
  lose(1, pathOf(100ms, 129ms, 1e6));  // 57.2
  EXPECT_EQ(c.window(), 105'000u);
}

TEST_F(WanCompetitionTest, UsualLossIsNotCongestion) {
  // A tenth is lost; an eighth of that counts: 1.9 of 150 packets, three times that and one more
  // are 6.6.
  WanRound round = roundAt(0.9e6, 160ms, at(2s));
  round.lost = 10e3;
  path.onRound(round, at(2s), PathModel::Rate::kAll);
  lose(6, path);
  EXPECT_EQ(c.window(), 150'000u);
  lose(7, path);
  EXPECT_EQ(c.window(), 105'000u);
}

}  // namespace
}  // namespace braid::wan_competition_test
