#include "scheduler/rate/wan_burst.h"

#include <gtest/gtest.h>

#include "tests/unit/scheduler/rate/wan_samples.h"

namespace braid::wan_burst_test {
namespace {

constexpr uint64_t kTold = 10 * kBytes;
constexpr Duration kTarget = 10ms;

/// A path of 100 ms; more than half of the 10 ms that are aimed at is a queue.
struct WanBurstTest : testing::Test {
  WanBurst burst{kTold};
  WanPath path = pathOf(100ms, 100ms, 1e6);
  Time now = at(10s);
  struct With {
    uint64_t packets = 20;
    Duration rtt = 100ms;
    uint64_t lost = 0;  // of them
    uint64_t marks = 0;
    bool streams = false;
  };
  /// Two ACKs, a second after the burst before.
  void send(With with) {
    now += 1s;
    burst.begin();
    uint64_t acked = (with.packets - with.lost) * kBytes;
    burst.onAck({.now = now, .bytes = acked / 2, .largestSentAt = now - 100ms, .rtt = with.rtt - 1ms});
    if (with.lost > 0) burst.onLoss(lossOf(with.lost, now, now));
    burst.onAck({.now = now,
                 .bytes = acked - acked / 2,
                 .largestSentAt = now - 100ms,
                 .rtt = with.rtt + 1ms,
                 .marks = with.marks});
    burst.end(path, kTarget, now, with.streams);
  }
  void send() { send(With{}); }
  /// Bursts until the pace is 8.
  void speedUp() {
    for (int i = 0; i < 3; ++i) send();
    ASSERT_EQ(burst.pace(), WanBurst::kMost);
  }
};

TEST_F(WanBurstTest, EachBurstWithoutAQueueDoublesThePaceOfTheNext) {
  EXPECT_EQ(burst.pace(), 1.2);
  for (double pace : {2.4, 4.8, 8.0, 8.0}) {
    send({.rtt = 105ms});  // half of what is aimed at
    EXPECT_EQ(burst.pace(), pace);
  }
}

TEST_F(WanBurstTest, EachBurstThatQueuesHalvesIt) {
  speedUp();
  for (double pace : {4.0, 2.0, 1.2, 1.2}) {
    send({.rtt = 106ms});
    EXPECT_EQ(burst.pace(), pace);
  }
}

TEST_F(WanBurstTest, AfterABurstThatQueuedThePaceDoesNotGrowForTenSeconds) {
  speedUp();
  send({.rtt = 106ms});
  for (int i = 1; i < 10; ++i) {
    send();
    EXPECT_EQ(burst.pace(), 4) << i << " s";
  }
  send();
  EXPECT_EQ(burst.pace(), 8);
}

TEST_F(WanBurstTest, ABurstThatLosesMuchHalvesIt) {
  speedUp();
  send({.packets = 24, .lost = 3});
  EXPECT_EQ(burst.pace(), 8) << "an eighth is the path's";
  send({.packets = 24, .lost = 4});
  EXPECT_EQ(burst.pace(), 4);
}

TEST_F(WanBurstTest, OneLossIsNotMuch) {
  WanBurst small(kBytes);
  std::swap(burst, small);
  speedUp();
  send({.packets = 4, .lost = 1});
  EXPECT_EQ(burst.pace(), 8);
  send({.packets = 4, .lost = 2});
  EXPECT_EQ(burst.pace(), 4);
}

TEST_F(WanBurstTest, AMarkHalvesIt) {
  speedUp();
  send({.marks = 1});
  EXPECT_EQ(burst.pace(), 4);
}

// Its packets go at once at any pace, and the ACK of the last one may be delayed.
TEST_F(WanBurstTest, ABurstWithinTheInitialWindowSaysNothing) {
  send({.packets = 10});
  EXPECT_EQ(burst.pace(), 1.2);
  speedUp();
  send({.packets = 10, .rtt = 150ms});
  EXPECT_EQ(burst.pace(), 8);
}

TEST_F(WanBurstTest, ABurstWithoutARttSaysNothing) {
  now += 1s;
  burst.begin();
  burst.onAck({.now = now, .bytes = 20 * kBytes, .largestSentAt = now - 100ms});
  burst.end(path, kTarget, now, false);
  EXPECT_EQ(burst.pace(), 1.2);
}

TEST_F(WanBurstTest, AStreamGoesAtTheLeastPaceUntilNothingIsInFlight) {
  speedUp();
  send({.streams = true});
  EXPECT_EQ(burst.pace(), 1.2);
  burst.end(path, kTarget, now, false);
  EXPECT_EQ(burst.pace(), 8);
}

TEST_F(WanBurstTest, WhatAStreamQueuesSaysNothingOfBursts) {
  speedUp();
  send({.streams = true});
  burst.onAck({.now = now, .bytes = 100 * kBytes, .largestSentAt = now - 100ms, .rtt = 200ms});
  burst.end(path, kTarget, now, true);
  burst.end(path, kTarget, now, false);
  EXPECT_EQ(burst.pace(), 8);
}

TEST_F(WanBurstTest, ABurstIsJudgedByItsOwnPackets) {
  speedUp();
  send({.rtt = 106ms});
  now += 10s;
  send();
  EXPECT_EQ(burst.pace(), 8);
}

}  // namespace
}  // namespace braid::wan_burst_test
