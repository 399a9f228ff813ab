#include "base/time.h"

#include <gtest/gtest.h>

namespace braid::ration_test {
namespace {

constexpr RateLimit kSome{10, 100ms};

struct RationTest : testing::Test {
  TokenBucket ration;
  Time now = Time{} + 1h;

  int take(int times, const RateLimit& allowance = kSome) {
    int taken = 0;
    while (times-- > 0) taken += ration.take(allowance, now) ? 1 : 0;
    return taken;
  }
};

TEST_F(RationTest, ABurstAndThenOneEachPeriod) {
  EXPECT_EQ(take(100), 10);
  now += 100ms - 1ns;
  EXPECT_EQ(take(100), 0);
  now += 1ns;
  EXPECT_EQ(take(100), 1);
  now += 350ms;
  EXPECT_EQ(take(100), 3);
  now += 50ms;
  EXPECT_EQ(take(100), 1) << "the half period counts";
}

TEST_F(RationTest, ALongPauseGivesNoMoreThanTheBurst) {
  EXPECT_EQ(take(4), 4);
  now += 24h * 365;
  EXPECT_EQ(take(100), 10);
}

TEST_F(RationTest, WhatIsGivenBackCanBeTakenAgain) {
  EXPECT_EQ(take(100), 10);
  for (int i = 0; i < 3; ++i) ration.giveBack(kSome);
  EXPECT_EQ(take(100), 3);
  now += 24h;
  for (int i = 0; i < 100; ++i) ration.giveBack(kSome);
  EXPECT_EQ(take(100), 10) << "never more than the burst";
}

TEST_F(RationTest, SaysFromWhenOnSomeCanBeTaken) {
  EXPECT_LE(ration.availableAt(kSome, 10), now) << "full at first";
  EXPECT_EQ(take(10), 10);
  for (uint32_t count : {1u, 4u, 10u}) {
    TokenBucket some = ration;
    const Time then = some.availableAt(kSome, count);
    EXPECT_EQ(then, now + count * 100ms);
    for (uint32_t i = 0; i < count; ++i) EXPECT_TRUE(some.take(kSome, then)) << i;
    EXPECT_FALSE(some.take(kSome, then));
  }
}

TEST_F(RationTest, WhoAsksInVainLosesNothing) {
  EXPECT_EQ(take(10), 10);
  for (int i = 0; i < 99; ++i) {
    EXPECT_EQ(take(1000), 0);
    now += 1ms;
  }
  now += 1ms;
  EXPECT_EQ(take(1), 1);
}

TEST_F(RationTest, TimeThatRunsBackwardsGivesNothing) {
  EXPECT_EQ(take(100), 10);
  now -= 10min;
  EXPECT_EQ(take(100), 0);
  now += 10min;
  EXPECT_EQ(take(100), 0);
  now += 100ms;
  EXPECT_EQ(take(100), 1);
}

TEST_F(RationTest, ItIsFullAtTheFirstTimeWhateverThatIs) {
  for (Time first : {Time{}, Time{} + 1ns, Time{} - 1h, Time{} + 24h * 36500}) {
    ration = {};
    now = first;
    EXPECT_EQ(take(100), 10);
  }
}

}  // namespace
}  // namespace braid::ration_test
