#include "scheduler/rate/wan_detectors.h"

#include <gtest/gtest.h>

#include "tests/unit/scheduler/rate/wan_samples.h"

namespace braid::wan_foreign_queue_test {
namespace {

using Owner = CompetitionDetector::Owner;

/// 6.25 MB/s: the target is 5 ms.
struct WanForeignQueueTest : testing::Test {
  CompetitionDetector foreign{kBytes};
  WanTarget target{kBytes};
  bool round(Duration queue) {
    return foreign.onRound(pathOf(100ms, 100ms + queue, 6.25e6), target);
  }
  Owner probe(Duration queue) {
    return foreign.onProbe(pathOf(100ms, 100ms + queue, 6.25e6), target);
  }
};

TEST_F(WanForeignQueueTest, TwoRoundsAboveOneAndAHalfTargetsAreAReasonToLook) {
  EXPECT_FALSE(round(7600us));
  EXPECT_TRUE(round(7600us));
}

TEST_F(WanForeignQueueTest, ARoundBetweenThemBeginsAnew) {
  EXPECT_FALSE(round(7600us));
  EXPECT_FALSE(round(7400us));
  EXPECT_FALSE(round(7600us));
  foreign.restart();
  EXPECT_FALSE(round(7600us));
}

TEST_F(WanForeignQueueTest, TheTargetIsThatOfTheHighestRateButOwnQueueIsAllowed) {
  PathModel path = pathOf(100ms, 110ms, 6.25e6);
  path.onRound(roundAt(0, 110ms, at(2s)), at(2s), PathModel::Rate::kAll);
  path.onRound(roundAt(1.5625e6, 111ms, at(3s)), at(3s), PathModel::Rate::kAll);
  // Now 2.34 MB/s: the target is 6.93 ms, 1.2 of it 8.3 ms, 1.5 of that of 6.1 MB/s 7.5 ms.
  EXPECT_FALSE(foreign.onRound(path, target));
  EXPECT_TRUE(foreign.onRound(path, target));
  path.onRound(roundAt(2.34375e6, 108ms, at(4s)), at(4s), PathModel::Rate::kAll);
  foreign.restart();
  EXPECT_FALSE(foreign.onRound(path, target));
  EXPECT_FALSE(foreign.onRound(path, target));
}

TEST_F(WanForeignQueueTest, ThreeLooksInTurnMakeItSomebodyElses) {
  EXPECT_EQ(probe(6300us), Owner::kDoubtful);
  EXPECT_EQ(probe(6300us), Owner::kDoubtful);
  EXPECT_EQ(probe(6200us), Owner::kSelf);
  EXPECT_EQ(probe(6300us), Owner::kDoubtful);
  EXPECT_EQ(probe(6300us), Owner::kDoubtful);
  EXPECT_EQ(probe(6300us), Owner::kOther);
}

TEST_F(WanForeignQueueTest, OneAndAHalfDatagramsAreNoQueue) {
  PathModel path = pathOf(100ms, 112ms, 6.25e6);
  path.onRound(roundAt(100e3, 112ms, at(2s)), at(2s),
               PathModel::Rate::kNothing);  // 15 ms for 1.5 datagrams
  EXPECT_FALSE(foreign.onRound(path, target));
  EXPECT_FALSE(foreign.onRound(path, target));
  EXPECT_EQ(foreign.onProbe(path, target), Owner::kSelf);
}

}  // namespace
}  // namespace braid::wan_foreign_queue_test
