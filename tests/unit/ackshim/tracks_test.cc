#include "ackshim/tracks_timer.h"

#include <gtest/gtest.h>

#include <optional>

namespace braid::tracks_test {
namespace {

// RTT 1 ms: beta = alpha * RTT + rand(RTT) lies in [10, 11) ms.
struct TracksTest : testing::Test {
  TracksTest() {
    half.known = true;
    half.una = {1000};
    half.nxt = {3000};
    half.rtt.onSample(1ms);
    half.ackAt = half.activeAt = at(0ms);
  }
  static Timestamp32 at(Duration d) { return Timestamp32{} + d; }
  Duration left(Duration now) { return tracks.left(half, options, random, at(now)); }
  std::optional<int> act(Duration now) { return tracks.act(half, options, at(now)); }

  AckShimOptions options;
  Random random{3};
  TcpDirection half;
  TracksTimer tracks;
};

TEST_F(TracksTest, BetaIsAlphaRttPlusRandomPartOfOne) {
  bool low = false, high = false;
  for (int i = 0; i < 200; ++i) {
    TracksTimer fresh;
    Duration beta = fresh.left(half, options, random, at(0ms));
    EXPECT_GE(beta, 10ms);
    EXPECT_LT(beta, 11ms);
    low |= beta < 10200us;
    high |= beta > 10800us;
  }
  EXPECT_TRUE(low && high);
  options.alpha = 50;
  EXPECT_GE(TracksTimer().left(half, options, random, at(0ms)), 50ms);
}

TEST_F(TracksTest, TheWaitCountsFromTheLaterOfAckAndData) {
  half.activeAt = at(4ms);
  Duration beta = left(4ms);
  EXPECT_GE(beta, 10ms);
  half.ackAt = at(6ms);
  EXPECT_EQ(left(6ms), beta);
  EXPECT_EQ(left(7ms), beta - 1ms);
}

TEST_F(TracksTest, PhiLessTheDuplicatesSeen) {
  EXPECT_EQ(act(left(0ms)), 3);
  tracks.onNewAck();
  half.dupAcks = 1;
  EXPECT_EQ(act(11ms), 2);
  tracks.onNewAck();
  half.dupAcks = 5;
  EXPECT_EQ(act(11ms), 0);
  EXPECT_TRUE(tracks.isRecovering());
}

// After the first salvo at t: one more at t + 4 beta and t + 8 beta (beta << x, x = 2, 3);
// resent_time stays.
TEST_F(TracksTest, OneMoreAtFourAndEightBeta) {
  options.rtoMin = 10s;
  Duration beta = left(0ms);
  EXPECT_EQ(act(beta), 3);
  EXPECT_EQ(left(beta), 4 * beta);
  EXPECT_EQ(left(beta + 4 * beta - 1us), 1us);
  EXPECT_EQ(act(5 * beta), 1);
  EXPECT_EQ(left(5 * beta), 4 * beta);
  EXPECT_EQ(act(9 * beta), 1);
  EXPECT_EQ(left(9 * beta), 8 * beta);
}

TEST_F(TracksTest, SoftResetAtTheMinimumRtoUntilNewDataOrAnAck) {
  Duration beta = left(0ms);
  act(beta);
  act(5 * beta);
  act(9 * beta);
  act(17 * beta);
  EXPECT_EQ(left(17 * beta), 200ms - 17 * beta);  // before 33 beta
  EXPECT_EQ(act(200ms), std::nullopt);
  EXPECT_FALSE(tracks.isRecovering());
  EXPECT_EQ(left(200ms), TracksTimer::kNothing);
  tracks.onData();
  half.activeAt = at(210ms);
  EXPECT_NE(left(210ms), TracksTimer::kNothing);
}

TEST_F(TracksTest, DataBeginTheWaitAnewButNotTheRecovery) {
  act(left(0ms));
  tracks.onData();
  half.activeAt = at(12ms);
  EXPECT_TRUE(tracks.isRecovering());
  EXPECT_GE(left(12ms), 10ms);
  tracks.onNewAck();
  EXPECT_FALSE(tracks.isRecovering());
}

TEST_F(TracksTest, ALongRttDoesNotOverflow) {
  for (int i = 0; i < 100; ++i) half.rtt.onSample(60s);
  options.alpha = 1000;
  Duration beta = left(0ms);
  EXPECT_GT(beta, 1000s);
  act(0ms);
  EXPECT_GE(left(0ms), 0ms);
}

// With extreme settings the backoff ends before rtoMin; then no more salvos are sent.
TEST_F(TracksTest, TheBackoffHasAnEnd) {
  options.alpha = 1;
  options.rtoMin = 1h;
  half.rtt = {};
  half.rtt.onSample(100us);
  Duration now = left(0ms);
  int acks = 0;
  for (; acks < 50 && act(now); ++acks) now += left(now);
  EXPECT_LT(acks, 20);
  EXPECT_FALSE(tracks.isRecovering());
  EXPECT_EQ(left(now), TracksTimer::kNothing);
}

}  // namespace
}  // namespace braid::tracks_test
