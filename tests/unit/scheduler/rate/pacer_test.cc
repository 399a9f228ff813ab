#include "scheduler/rate/pacer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace braid::pacer_test {
namespace {

constexpr Time at(Duration d) {
  return Time{} + d;
}

TEST(Pacer, NoRateNoPacing) {
  Pacer pacer(1000);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_LE(pacer.nextSend(), at(1s));
    pacer.onSent(1000, at(1s));
  }
}

TEST(Pacer, BurstThenRate) {
  Pacer pacer(1000);
  pacer.setRate(100'000);  // 1 ms is 100 bytes: the burst is ten datagrams
  EXPECT_DOUBLE_EQ(pacer.burst(), 10'000);
  for (int i = 0; i < 10; ++i) {
    EXPECT_LE(pacer.nextSend(), at(1s)) << i;
    pacer.onSent(1000, at(1s));
  }
  EXPECT_EQ(pacer.nextSend(), at(1010ms));
  pacer.onSent(1000, at(1010ms));
  EXPECT_EQ(pacer.nextSend(), at(1020ms));
}

TEST(Pacer, FastRateGetsThreeMilliseconds) {
  Pacer pacer(1000);
  pacer.setRate(100e6);
  EXPECT_DOUBLE_EQ(pacer.burst(), 300'000);
}

TEST(Pacer, LateTimerMakesUpUpToTheBurst) {
  Pacer pacer(1000);
  pacer.setRate(1'000'000);  // a datagram per ms
  for (int i = 0; i < 10; ++i) pacer.onSent(1000, at(1s));
  auto sendAll = [&](Time now) {
    int n = 0;
    for (; pacer.nextSend() <= now; ++n) pacer.onSent(1000, now);
    return n;
  };
  EXPECT_EQ(sendAll(at(1s)), 0);
  EXPECT_EQ(sendAll(at(1004ms)), 4) << "woken up 3 ms late";
  EXPECT_EQ(sendAll(at(2s)), 10) << "a long pause saves no more than the burst";
}

TEST(Pacer, ProbesOutOfTurnArePaidBack) {
  Pacer pacer(1000);
  pacer.setRate(1'000'000);
  for (int i = 0; i < 12; ++i) pacer.onSent(1000, at(1s));
  EXPECT_EQ(pacer.nextSend(), at(1003ms));
}

TEST(Pacer, RateChangeHoldsAtOnce) {
  Pacer pacer(1000);
  pacer.setRate(100'000);
  for (int i = 0; i < 10; ++i) pacer.onSent(1000, at(1s));
  pacer.setRate(200'000);
  EXPECT_EQ(pacer.nextSend(), at(1005ms));
  pacer.setRate(0);
  EXPECT_EQ(pacer.nextSend(), kNever);
}

// In a data centre, the RTT rises from 0.1 to 5 ms when a CPU is busy, and the rate falls
// accordingly.
TEST(Pacer, ABurstAtAHighRateIsNoDebtAtALowerOne) {
  Pacer pacer(1000);
  pacer.setRate(500e6);
  for (int i = 0; i < 1000; ++i) pacer.onSent(1000, at(1s));  // of an allowed burst of 1,500
  pacer.setRate(10e6);
  EXPECT_LE(pacer.nextSend(), at(1s)) << "some of the burst is left";
  for (int i = 0; i < 30; ++i) pacer.onSent(1000, at(1s));
  EXPECT_EQ(pacer.nextSend(), at(1s) + 100us) << "the burst of the lower rate is spent";
  pacer.setRate(500e6);
  EXPECT_EQ(pacer.nextSend(), at(1s) + 2us)
      << "and a higher rate gives none that has not been earned";
  pacer.onSent(2000, at(1s));
  pacer.setRate(1e6);
  EXPECT_EQ(pacer.nextSend(), at(1s) + 3ms) << "what left ahead is paid back";
}

TEST(PacerProperty, LongRunRateIsTheRate) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    double rate = 50e3 + 20e6 * random.uniform();
    Pacer pacer(1400);
    pacer.setRate(rate);
    Time now = at(1s);
    double sent = 0;
    while (now < at(6s)) {
      while (pacer.nextSend() <= now) {
        uint64_t bytes = 100 + random.below(1300);
        pacer.onSent(bytes, now);
        sent += static_cast<double>(bytes);
        ASSERT_LE(sent, rate * toSeconds(now - at(1s)) + pacer.burst() + 1400);
      }
      now = pacer.nextSend() + Duration(random.below(500'000));  // below the burst: nothing is lost
    }
    EXPECT_GE(sent, rate * 5 * 0.999);
  }
}

TEST(Pacer, WhatMayBeAheadHasALargerBucket) {
  Pacer pacer(1000);
  pacer.setRate(100'000);
  for (int i = 0; i < 10; ++i) pacer.onSent(1000, at(1s));
  EXPECT_EQ(pacer.nextSend(), at(1010ms));
  EXPECT_LE(pacer.nextSend(2000), at(1s));
  pacer.onSent(1000, at(1s));
  pacer.onSent(1000, at(1s));
  EXPECT_EQ(pacer.nextSend(2000), at(1010ms));
  EXPECT_EQ(pacer.nextSend(), at(1030ms)) << "paid back";
}

TEST(Pacer, ABurstThatThePathIsKnownToBearGoesAtOnce) {
  Pacer pacer(1000);
  pacer.setRate(1'000'000, 40'000);
  EXPECT_DOUBLE_EQ(pacer.burst(), 40'000);
  for (int i = 0; i < 40; ++i) {
    EXPECT_LE(pacer.nextSend(), at(1s)) << i;
    pacer.onSent(1000, at(1s));
  }
  EXPECT_EQ(pacer.nextSend(), at(1001ms));
  pacer.setRate(1'000'000, 5'000);
  EXPECT_DOUBLE_EQ(pacer.burst(), 10'000) << "ten datagrams always may";
  EXPECT_EQ(pacer.nextSend(), at(1001ms)) << "what is spent is spent";
}

}  // namespace
}  // namespace braid::pacer_test
