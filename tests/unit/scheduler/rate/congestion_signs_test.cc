#include "scheduler/rate/congestion_signs.h"

#include <gtest/gtest.h>

namespace braid::congestion_signs_test {
namespace {

constexpr Duration kRtt = 10ms;
constexpr Time at(Duration d) {
  return Time{} + d;
}

struct CongestionSignsTest : testing::Test {
  CongestionEpisode session;
  CongestionSigns path, other;
  bool isCongestion(CongestionSigns& signs, Time sentAt) {
    return signs.explain(sentAt, kRtt, session, sentAt + kRtt);
  }
};

TEST_F(CongestionSignsTest, ALossWithoutASignIsThePaths) {
  EXPECT_FALSE(isCongestion(path, at(1s)));
  path.onRtt(11ms, kRtt, at(1s));
  EXPECT_FALSE(isCongestion(path, at(1s)));
  EXPECT_FALSE(path.congested(at(1s)));
}

TEST_F(CongestionSignsTest, MarksExplainALossWithinARoundTrip) {
  path.onMarks(at(1s));
  EXPECT_TRUE(isCongestion(path, at(1s) - kRtt));
  EXPECT_TRUE(isCongestion(path, at(1s) + kRtt));
  EXPECT_FALSE(path.explain(at(1s) + 3 * kRtt, kRtt, session, at(2s)));
}

TEST_F(CongestionSignsTest, ALongQueueExplainsALoss) {
  path.onRtt(2 * kRtt - 1ns, kRtt, at(1s));
  EXPECT_FALSE(isCongestion(path, at(1s)));
  path.onRtt(2 * kRtt, kRtt, at(1s));
  EXPECT_TRUE(isCongestion(path, at(1s)));
}

TEST_F(CongestionSignsTest, AQueueFarBelowTheLongestDoesNot) {
  path.onRtt(100ms, kRtt, at(1s));
  path.onRtt(30ms, kRtt, at(2s));
  EXPECT_FALSE(isCongestion(path, at(2s)));
  for (int i = 0; i < 2 * CongestionSigns::kFading; ++i) path.onRtt(kRtt, kRtt, at(3s));
  path.onRtt(30ms, kRtt, at(4s));
  EXPECT_TRUE(isCongestion(path, at(4s))) << "that was long ago";
}

TEST_F(CongestionSignsTest, ALossBesideOneByCongestionOnAnotherPathIsOneToo) {
  EXPECT_FALSE(isCongestion(other, at(1s)));
  path.onMarks(at(1s));
  ASSERT_TRUE(isCongestion(path, at(1s)));
  EXPECT_TRUE(isCongestion(other, at(1s) + kRtt / 2));
  EXPECT_TRUE(other.congested(at(1s) + 2 * kRtt));
  EXPECT_FALSE(isCongestion(other, at(2s)));
}

TEST_F(CongestionSignsTest, APathThatWasHeardTellsItsLossesItself) {
  path.onMarks(at(1s));
  ASSERT_TRUE(isCongestion(path, at(1s)));
  other.onRtt(kRtt, kRtt, at(1s));
  EXPECT_FALSE(isCongestion(other, at(1s) + kRtt / 2)) << "a radio path beside a full one";
}

TEST_F(CongestionSignsTest, TheQueueThatTheControllerKeepsIsNoSign) {
  constexpr Duration kOwn = 2 * kRtt;
  path.onRtt(kRtt + CongestionSigns::kOwnQueues * kOwn - 1ns, kRtt, at(1s), kOwn);
  EXPECT_FALSE(isCongestion(path, at(1s)));
  path.onRtt(kRtt + CongestionSigns::kOwnQueues * kOwn, kRtt, at(1s), kOwn);
  EXPECT_TRUE(isCongestion(path, at(1s)));
}

TEST_F(CongestionSignsTest, AnEpisodeEndsWhereNothingIsLost) {
  for (Time t : {at(1s), at(1s) + 5ms, at(1s) + 12ms}) {
    path.onMarks(t);
    ASSERT_TRUE(isCongestion(path, t));
  }
  EXPECT_TRUE(session.covers(at(1s) - kRtt, kRtt));
  EXPECT_TRUE(session.covers(at(1s) + 22ms, kRtt));
  path.onMarks(at(2s));
  ASSERT_TRUE(isCongestion(path, at(2s)));
  EXPECT_FALSE(session.covers(at(1s), kRtt));
}

TEST_F(CongestionSignsTest, APathIsCongestedUntilEnoughArrives) {
  path.onMarks(at(1s));
  ASSERT_TRUE(isCongestion(path, at(1s)));
  for (uint32_t i = 1; i < CongestionSigns::kCalm; ++i) path.onAcked();
  EXPECT_TRUE(path.congested(at(2s)));
  path.onAcked();
  EXPECT_FALSE(path.congested(at(2s)));
}

TEST_F(CongestionSignsTest, OrUntilItIsLongAgo) {
  path.onMarks(at(1s));
  ASSERT_TRUE(isCongestion(path, at(1s)));
  EXPECT_TRUE(path.congested(at(1s) + CongestionSigns::kForget));
  EXPECT_FALSE(path.congested(at(1s) + kRtt + CongestionSigns::kForget));
}

}  // namespace
}  // namespace braid::congestion_signs_test
