#include "scheduler/rate/wan_burst.h"

#include <gtest/gtest.h>

#include "tests/unit/scheduler/rate/wan_samples.h"

namespace braid::wan_burst_test {
namespace {

constexpr uint64_t kLeast = 10 * kBytes;
constexpr Duration kBase = 100ms;
constexpr Duration kTarget = 10ms;

/// A path of 100 ms with a delay target of 10 ms. More than half of the target counts as a queue.
struct WanBurstTest : testing::Test {
  WanBurst burst{kLeast};
  Time now = at(10s);
  struct With {
    Duration rtt = kBase;
    uint64_t lost = 0;  // packets
    uint64_t marks = 0;
    Duration delay{};
  };
  void ack(uint64_t packets, const With& with) {
    burst.onAck({.now = now,
                 .bytes = packets * kBytes,
                 .largestSentAt = now - with.rtt,
                 .rtt = with.rtt,
                 .delay = with.delay,
                 .marks = with.marks},
                kBase);
  }
  /// Sends a burst of `packets` packets, one second after the previous one, and reports its fate in
  /// two ACKs.
  void send(uint64_t packets, With with) {
    begin();
    uint64_t acked = packets - with.lost;
    ack(acked / 2, {.rtt = with.rtt, .delay = with.delay});
    if (with.lost > 0) burst.onLoss(lossOf(with.lost, now, now));
    ack(acked - acked / 2, with);
  }
  void send(uint64_t packets) { send(packets, With{}); }
  void begin() {
    now += 1s;
    burst.begin(kTarget, now);
  }
  /// Number of packets that the next burst may send at once.
  double size() {
    begin();
    now -= 1s;
    return burst.size() / static_cast<double>(kBytes);
  }
  /// Sends bursts until 80 packets may be sent at once.
  void grow() {
    for (uint64_t packets : {10, 20, 40}) send(packets);
    ASSERT_EQ(size(), 80);
  }
};

TEST_F(WanBurstTest, ABurstThatCameThroughLetsOneTwiceAsLargeGo) {
  EXPECT_EQ(size(), 10);
  for (uint64_t packets : {10, 20, 40}) {
    send(packets, {.rtt = 105ms});  // half of the target
    EXPECT_EQ(size(), 2 * packets);
  }
}

TEST_F(WanBurstTest, OnlyWhatWentAtOnceTellsOfTheNext) {
  send(500);
  EXPECT_EQ(size(), 20) << "490 of them were paced";
}

TEST_F(WanBurstTest, WhatIsPacedAfterwardsTellsNothing) {
  begin();
  ack(10, {});
  burst.onLoss(lossOf(100, now, now));
  ack(400, {.rtt = 200ms});
  EXPECT_EQ(size(), 20);
  begin();
  ack(4, {});
  burst.onLoss(lossOf(16, now, now));
  ack(400, {});
  EXPECT_EQ(size(), 10) << "16 of 20 were lost, of 420 in all";
}

TEST_F(WanBurstTest, FromTheFirstAckOnNothingGoesAtOnce) {
  grow();
  begin();
  EXPECT_EQ(burst.size(), 80 * kBytes);
  ack(1, {});
  EXPECT_EQ(burst.size(), 0);
}

TEST_F(WanBurstTest, ASmallBurstTellsNothingOfALargeOne) {
  grow();
  send(20);
  EXPECT_EQ(size(), 80);
  send(45);
  EXPECT_EQ(size(), 90);
}

TEST_F(WanBurstTest, ABurstThatQueuedLetsHalfOfItGo) {
  grow();
  send(60, {.rtt = 106ms});
  EXPECT_EQ(size(), 30);
  send(500, {.rtt = 106ms});
  EXPECT_EQ(size(), 15) << "30 of them went at once";
  send(15, {.rtt = 106ms});
  EXPECT_EQ(size(), 10) << "what may go at once anyway";
}

TEST_F(WanBurstTest, AnAckThatThePeerHeldBackIsNoQueue) {
  send(10, {.rtt = 115ms, .delay = 12ms});
  EXPECT_EQ(size(), 20);
  send(20, {.rtt = 115ms, .delay = 5ms});
  EXPECT_EQ(size(), 10);
}

TEST_F(WanBurstTest, AMarkIsAQueue) {
  grow();
  send(60, {.marks = 1});
  EXPECT_EQ(size(), 30);
}

TEST_F(WanBurstTest, ABurstThatLostMuchWasTooLarge) {
  grow();
  send(48, {.lost = 6});
  EXPECT_EQ(size(), 96) << "an eighth is the path's own";
  send(60, {.lost = 20});
  EXPECT_EQ(size(), 30);
}

TEST_F(WanBurstTest, WhatMayGoAtOnceAnywayIsNeverTooLarge) {
  grow();
  send(10, {.rtt = 150ms, .lost = 4, .marks = 1});
  EXPECT_EQ(size(), 80);
  send(11, {.rtt = 150ms, .lost = 4, .marks = 1});
  EXPECT_EQ(size(), 10);
}

TEST_F(WanBurstTest, WhatIsUsuallyLostIsThePathsOwn) {
  grow();
  for (int i = 0; i < 200; ++i) send(10, {.lost = 1});
  send(40, {.lost = 8});  // 20 % loss, while 10 % is usual
  EXPECT_EQ(size(), 80);
  for (int i = 0; i < 200; ++i) send(10);
  send(40, {.lost = 6});  // 15 % loss, while hardly any is usual now
  EXPECT_EQ(size(), 20);
}

TEST_F(WanBurstTest, WhatLargeBurstsLoseIsNeverUsual) {
  grow();
  for (int i = 0; i < 100; ++i) send(40, {.lost = 5});
  EXPECT_EQ(size(), 80) << "an eighth";
  send(40, {.lost = 6});
  EXPECT_EQ(size(), 20);
}

TEST_F(WanBurstTest, AfterOneThatWasTooLargeTheyGrowOnlyTenSecondsLater) {
  grow();
  send(80, {.rtt = 106ms});
  for (int i = 0; i < 8; ++i) send(40);
  EXPECT_EQ(size(), 40);
  send(40);
  now += 1s;
  send(40);
  EXPECT_EQ(size(), 80);
}

TEST_F(WanBurstTest, EachThatIsTooLargeAgainMakesThemWaitTwiceAsLong) {
  grow();
  for (Duration patience : {10s, 20s, 40s, 80s, 160s, 320s, 320s}) {
    send(80, {.rtt = 106ms});
    ASSERT_EQ(size(), 40);
    now += patience - 2s;
    send(40);  // it is judged a second later
    EXPECT_EQ(size(), 40) << patience.count();
    now += 1s;
    send(40);
    ASSERT_EQ(size(), 80) << patience.count();
  }
}

TEST_F(WanBurstTest, OneOfThatSizeThatCameThroughEndsThat) {
  grow();
  for (Duration patience : {10s, 20s}) {
    send(80, {.rtt = 106ms});
    ASSERT_EQ(size(), 40);
    now += patience;
    send(40);
    ASSERT_EQ(size(), 80);
  }
  send(80);
  send(160, {.rtt = 106ms});
  ASSERT_EQ(size(), 80);
  now += 10s;
  send(80);
  EXPECT_EQ(size(), 160);
}

TEST_F(WanBurstTest, WithoutARttItTellsNothing) {
  begin();
  ack(10, {.rtt = {}});
  EXPECT_EQ(size(), 10);
}

TEST_F(WanBurstTest, EachBurstIsJudgedByItsOwnPackets) {
  grow();
  send(80, {.rtt = 112ms, .lost = 4, .marks = 2});
  ASSERT_EQ(size(), 40);
  now += 20s;
  send(40);
  EXPECT_EQ(size(), 80);
}

TEST_F(WanBurstTest, TheSecondRoundEndsIt) {
  grow();
  begin();
  ack(60, {});
  burst.onRound(kTarget, now);  // with the first ACK
  burst.onRound(kTarget, now);
  ack(20, {.rtt = 200ms});  // of a download, which queues
  EXPECT_EQ(size(), 120);
}

TEST_F(WanBurstTest, ANewBurstHasItsOwnRounds) {
  grow();
  begin();
  burst.onRound(kTarget, now);
  begin();
  ack(60, {});
  burst.onRound(kTarget, now);
  ack(20, {.rtt = 200ms});
  EXPECT_EQ(size(), 40);
}

}  // namespace
}  // namespace braid::wan_burst_test
