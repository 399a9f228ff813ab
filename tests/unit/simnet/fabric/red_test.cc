// RED's rules one by one (Floyd and Jacobson 1993, section 4; "gentle": Floyd 2000).

#include "simnet/fabric/red.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace braid::red_test {
namespace {

using sim::Red;

constexpr Duration kPacket = 10us;

struct Queue {
  /// Offers `arrivals` packets, one packet time apart, which all find `waiting` packets in the
  /// queue. Returns how many are marked or dropped.
  int offer(size_t waiting, int arrivals) {
    int hits = 0;
    for (int i = 0; i < arrivals; ++i) {
      now += kPacket;
      hits += red.hits(waiting, now, now, random);
    }
    return hits;
  }
  Red red{kPacket};
  Time now{};
  Random random{7};
};

TEST(Red, BelowTheLowerThresholdNothingIsHit) {
  Queue q;
  EXPECT_EQ(q.offer(19, 20'000), 0);
}

// The average follows the queue with a weight of 0.002: it takes 255 packets from 0 to 0.4 of 50.
TEST(Red, TheAverageAndNotTheQueueCounts) {
  Queue q;
  EXPECT_EQ(q.offer(50, 250), 0);
  EXPECT_GT(q.offer(50, 2000), 0);
}

// At 40 the probability is 0.05, and the gaps are uniform between 1 and 19: a tenth is hit.
TEST(Red, HitsAreSpreadEvenly) {
  Queue q;
  q.offer(40, 5000);
  EXPECT_NEAR(q.offer(40, 20'000), 20'000 / 10, 60);
  int gap = 0, longest = 0;
  for (int i = 0; i < 20'000; ++i) {
    gap = q.offer(40, 1) ? 0 : gap + 1;
    longest = std::max(longest, gap);
  }
  EXPECT_LE(longest, 19);
}

// From the upper threshold to twice that value the probability rises from 0.1 to 1.
TEST(Red, AboveTheUpperThresholdItIsGentle) {
  Queue q;
  q.offer(66, 10'000);
  EXPECT_NEAR(q.offer(66, 10'000), 3765, 200);  // 0.19: gaps of 1 to 5, 2.66 in the mean
  q.offer(120, 10'000);
  EXPECT_GE(q.offer(120, 1000), 995);
}

TEST(Red, AnEmptyQueueForgetsAsIfPacketsHadLeft) {
  Queue q;
  q.offer(50, 5000);
  ASSERT_GT(q.offer(50, 200), 0);
  // 1000 packets' time: 50 x 0.998^1000 = 6.8, below the threshold.
  Time emptySince = q.now;
  q.now += 1000 * kPacket;
  EXPECT_FALSE(q.red.hits(0, emptySince, q.now, q.random));
  EXPECT_EQ(q.offer(50, 100), 0);
}

}  // namespace
}  // namespace braid::red_test
