#include "scheduler/rate/wan.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/scheduler/rate/controller_samples.h"

namespace braid::wan_test {
namespace {

/// Datagrams of 1000 bytes on a path of 100 ms. A round is five ACKs of a fifth of the window each.
/// The last of them acknowledges data sent after the round began.
struct WanTest : testing::Test {
  Wan w{kBytes};
  Time now = at(1s);
  uint64_t delivered = 0;
  struct With {
    double inFlight = 1;  // part of the window
    int samples = 5;
    uint64_t acked = 0;  // bytes; 0: the window
    Duration lasts{};    // 0: the RTT
    Duration srtt{};     // 0: the RTT
    Duration minRtt = 100ms;
    Duration first{};  // RTT of the first sample; 0: as the others
    Duration delay{};  // part of the RTT for which the peer held the ACK back
  };
  void round(Duration rtt, With with) {
    if (delivered == 0) ackOne(rtt, with.minRtt);
    uint64_t window = w.window();
    uint64_t acked = with.acked > 0 ? with.acked : window;
    uint64_t before = delivered;
    Time began = now;
    Duration lasts = with.lasts > Duration{} ? with.lasts : rtt;
    for (int i = 1; i <= with.samples; ++i) {
      now = began + lasts * i / with.samples;
      delivered = before + acked * static_cast<uint64_t>(i) / static_cast<uint64_t>(with.samples);
      AckSample ack;
      ack.now = now;
      ack.bytes = acked / static_cast<uint64_t>(with.samples);
      ack.largestSentAt = now - rtt;
      ack.rtt = i == 1 && with.first > Duration{} ? with.first : rtt;
      ack.srtt = with.srtt > Duration{} ? with.srtt : rtt;
      ack.minRtt = with.minRtt;
      ack.delay = with.delay;
      ack.inFlight = static_cast<uint64_t>(with.inFlight * static_cast<double>(w.window()));
      ack.delivered = delivered;
      ack.priorDelivered = i == with.samples ? before : before - 1;
      w.onAck(ack);
    }
  }
  void round(Duration rtt) { round(rtt, With{}); }
  /// The very first ACK is a round of its own.
  void ackOne(Duration rtt, Duration minRtt) {
    AckSample ack;
    ack.now = now;
    ack.bytes = ack.inFlight = delivered = ack.delivered = 1;
    ack.rtt = ack.srtt = rtt;
    ack.minRtt = minRtt;
    w.onAck(ack);
  }
  void rounds(int n, Duration rtt) {
    for (int i = 0; i < n; ++i) round(rtt);
  }
  void lose(uint64_t packets) { w.onLoss(lossOf(packets, now, now)); }
  double window() const { return static_cast<double>(w.window()); }
  /// Brings the controller into its model phase at 1 MB/s, with a window of about 100 KB.
  void leaveStart() {
    while (w.window() < 100000) round(100ms);
    round(113ms, {.acked = 113000});
    ASSERT_EQ(w.mode(), Wan::Mode::kModel);
  }
};

// ---- the start

TEST_F(WanTest, BeginsWithTheInitialWindow) {
  EXPECT_EQ(w.window(), 10000u);
  EXPECT_TRUE(std::isinf(w.pacingRate()));
}

TEST_F(WanTest, StartDoublesTheWindowEachRound) {
  round(100ms, {.acked = 10000});
  EXPECT_EQ(w.window(), 20000u);
  EXPECT_DOUBLE_EQ(w.pacingRate(), 2 * 20000 / 0.1);
}

TEST_F(WanTest, StartDoesNotGrowAWindowThatIsNotUsed) {
  round(100ms, {.inFlight = 0.4});
  EXPECT_EQ(w.window(), 10000u);
}

TEST_F(WanTest, StartEndsWhenAQueueShows) {
  round(100ms);
  round(112ms);  // 100 / 8 = 12.5
  EXPECT_EQ(w.mode(), Wan::Mode::kStart);
  round(113ms);
  EXPECT_EQ(w.mode(), Wan::Mode::kModel);
}

TEST_F(WanTest, StartTakesFourMillisecondsOfAShortPathForAQueue) {
  round(10ms, {.minRtt = 10ms});
  round(13900us, {.minRtt = 10ms});
  EXPECT_EQ(w.mode(), Wan::Mode::kStart);
  round(14ms, {.minRtt = 10ms});
  EXPECT_EQ(w.mode(), Wan::Mode::kModel);
}

TEST_F(WanTest, StartEndsWhenBurstsQueueOnAverage) {
  // Two rounds with 12.5 ms on average end the start, although the first packet of each burst finds
  // the queue empty.
  round(100ms);
  round(131ms, {.first = 100ms});  // 24.8 ms on average
  EXPECT_EQ(w.mode(), Wan::Mode::kStart);
  round(132ms, {.first = 100ms});  // 25.6 ms
  EXPECT_EQ(w.mode(), Wan::Mode::kModel);
}

TEST_F(WanTest, StartDoesNotTrustFewSamples) {
  round(100ms);
  round(130ms, {.samples = 3});
  EXPECT_EQ(w.mode(), Wan::Mode::kStart);
}

TEST_F(WanTest, StartEndsAfterThreeRoundsWithoutAQuarterMore) {
  round(100ms, {.acked = 100000});
  round(100ms, {.acked = 124000});
  round(100ms, {.acked = 124000});
  EXPECT_EQ(w.mode(), Wan::Mode::kStart);
  round(100ms, {.acked = 124000});
  EXPECT_EQ(w.mode(), Wan::Mode::kModel);
}

TEST_F(WanTest, StartEndsWithALossyRound) {
  lose(3);
  round(100ms, {.acked = 10000});  // 3 of 13, but only 3 packets
  EXPECT_EQ(w.mode(), Wan::Mode::kStart);
  lose(4);
  round(100ms, {.acked = 37000});  // 4 of 41: less than a tenth
  EXPECT_EQ(w.mode(), Wan::Mode::kStart);
  lose(5);
  round(100ms, {.acked = 44000});  // 5 of 49, and less than a quarter more than 37
  EXPECT_EQ(w.mode(), Wan::Mode::kModel);
}

TEST_F(WanTest, StartGoesOnWhereLossDoesNotKeepTheRateFromGrowing) {
  for (uint64_t window = 10000; window < 300000; window *= 2) {
    lose(window / 3000);  // a quarter of all packets
    round(100ms);
    ASSERT_EQ(w.mode(), Wan::Mode::kStart) << window;
  }
}

TEST_F(WanTest, WhatThePeerWaitsIsNoQueue) {
  round(100ms);
  round(130ms, {.delay = 30ms});
  EXPECT_EQ(w.mode(), Wan::Mode::kStart);
  round(130ms, {.delay = 10ms});
  EXPECT_EQ(w.mode(), Wan::Mode::kModel);
}

TEST_F(WanTest, ADelayThatWouldLowerTheBaseRttIsNotBelieved) {
  round(100ms);
  round(101ms, {.delay = 50ms});
  EXPECT_EQ(w.baseRtt(), 100ms);
}

TEST_F(WanTest, StartEndsWithAMark) {
  round(100ms);
  w.onMarks(1, now, now);
  round(100ms);
  EXPECT_EQ(w.mode(), Wan::Mode::kModel);
}

TEST_F(WanTest, TheModelBeginsWithTheProductAndTheTarget) {
  round(100ms);
  // 1 MB/s: 100 KB and 5 ms * cbrt(6.25) of queue; but no more than it had.
  round(120ms, {.acked = 120000});
  EXPECT_EQ(w.window(), 109210u);
}

// ---- the target

TEST_F(WanTest, TargetFallsWithTheCubeRootOfTheRate) {
  round(100ms);
  round(120ms, {.acked = 750000});  // 6.25 MB/s
  EXPECT_NEAR(toSeconds(w.target()), 5e-3, 1e-8);
}

TEST_F(WanTest, TargetAtEightTimesTheRateIsHalf) {
  round(100ms);
  round(120ms, {.acked = 6000000});
  EXPECT_NEAR(toSeconds(w.target()), 2.5e-3, 1e-8);
}

TEST_F(WanTest, TargetIsTwoPacketsAtLeastAndTwentyFiveMillisecondsAtMost) {
  round(100ms, {.acked = 5000});  // 50 KB/s: 2 packets take 40 ms
  EXPECT_EQ(w.target(), 25ms);
  round(100ms, {.acked = 10000});  // 100 KB/s: 20 ms, the root says 19.8
  EXPECT_NEAR(toSeconds(w.target()), 20e-3, 1e-8);
}

// ---- the window equation

TEST_F(WanTest, WindowFollowsFast) {
  leaveStart();
  round(110ms, {.acked = 110000});  // rate 1 MB/s
  double before = window();
  round(110ms, {.acked = 110000});
  // w + (w * 100/110 + 1 MB/s * 9.2100 ms - w) / 2
  EXPECT_NEAR(window(), before + (before / 1.1 + 9210.1 - before) / 2, 2);
}

TEST_F(WanTest, WindowStaysWhereTheTargetIsQueued) {
  leaveStart();
  for (int i = 0; i < 60; ++i) {
    auto queue = std::max<double>(window() - 100000, 0);  // a link of 1 MB/s
    auto rtt = 100ms + fromSeconds(queue / 1e6);
    round(rtt, {.acked = static_cast<uint64_t>(toSeconds(rtt) * 1e6)});
  }
  EXPECT_EQ(w.mode(), Wan::Mode::kModel);
  EXPECT_NEAR(window(), 109210, 1500);
}

TEST_F(WanTest, GrowthIsAQuarterARoundAtMost) {
  leaveStart();
  for (int i = 0; i < 20; ++i) {
    double before = window();
    round(100ms);
    EXPECT_LE(window(), 1.25 * before + 1);
  }
  double before = window();
  round(100ms);
  EXPECT_NEAR(window(), 1.25 * before, 2);
}

TEST_F(WanTest, StepsDoubleAfterThreeRoundsWithLittleQueued) {
  leaveStart();
  double steps[5];
  for (double& step : steps) {
    double before = window();
    round(100ms, {.acked = 100000});
    step = window() - before;
  }
  EXPECT_NEAR(steps[1] / steps[0], 1, 0.02);
  EXPECT_NEAR(steps[2] / steps[1], 1, 0.02);
  EXPECT_NEAR(steps[3] / steps[2], 2, 0.02);
  EXPECT_NEAR(steps[4] / steps[3], 2, 0.02);
}

TEST_F(WanTest, AWindowThatIsNotUsedDoesNotGrow) {
  leaveStart();
  double before = window();
  round(100ms, {.inFlight = 0.79});
  EXPECT_EQ(window(), before);
  round(100ms, {.inFlight = 0.81});
  EXPECT_GT(window(), before);
}

TEST_F(WanTest, AWindowThatIsNotUsedFallsWhenItsBurstsQueue) {
  leaveStart();
  double before = window();
  round(130ms, {.inFlight = 0.5, .acked = 65000});  // rate 1 MB/s as before
  EXPECT_NEAR(window(), before + (before / 1.3 + 9210.1 - before) / 2, 2);
}

TEST_F(WanTest, AWindowThatIsNotUsedFallsToTheInitialOneAtMost) {
  round(100ms, {.acked = 20000});
  round(113ms, {.acked = 22600});  // 200 KB/s: alpha is 3.2 KB
  ASSERT_EQ(w.mode(), Wan::Mode::kModel);
  ASSERT_GT(w.window(), 20000u);
  for (int i = 0; i < 50; ++i) round(1000ms, {.inFlight = 0.5, .acked = 10000});
  EXPECT_EQ(w.window(), 10000u);
}

// Responses with pauses never fill the window on average, but the window limits each of them.
TEST_F(WanTest, ABurstAfterAPauseThatFillsTheWindowWidensIt) {
  leaveStart();
  auto burst = [&](uint64_t bytes, Duration pause, Duration rtt) {
    now += pause;
    for (uint64_t sent = kBytes; sent <= bytes; sent += kBytes) w.onSent(kBytes, sent, now);
    round(rtt, {.inFlight = 0.1, .samples = 1, .acked = kBytes});  // says nothing
    round(rtt, {.inFlight = 0.5, .acked = bytes - kBytes});
  };
  uint64_t before = w.window();
  burst(before / 2, 1s, 100ms);
  EXPECT_EQ(w.window(), before) << "it had room";
  burst(before, 1s, 100ms);
  EXPECT_NEAR(window(), static_cast<double>(before) * 1.25, 2);
  before = w.window();
  burst(before, 1s, 120ms);
  EXPECT_LE(w.window(), before) << "it queued";
}

TEST_F(WanTest, AFullWindowWithoutAPauseBeforeItIsNoReason) {
  leaveStart();
  uint64_t before = w.window();
  for (uint64_t sent = kBytes; sent <= before; sent += kBytes) w.onSent(kBytes, sent, now);
  round(100ms, {.inFlight = 0.5});
  EXPECT_EQ(w.window(), before);
}

/// Responses of `packets` datagrams on an idle path, of which the last `lost` are lost.
struct WanBurstsTest : WanTest {
  void respond(uint64_t packets, Duration rtt, uint64_t lost = 0) {
    now += 1s;
    for (uint64_t i = 1; i <= packets; ++i) w.onSent(kBytes, i * kBytes, now);
    now += rtt;
    uint64_t prior = delivered;
    if (lost > 0) w.onLoss(lossOf(lost, now, now));
    for (uint64_t left = packets - lost; left > 0; left -= 2) {
      AckSample ack;
      ack.now = now;
      ack.bytes = 2 * kBytes;
      ack.inFlight = left * kBytes;
      ack.rtt = ack.srtt = rtt;
      ack.minRtt = 100ms;
      ack.delivered = delivered += 2 * kBytes;
      ack.priorDelivered = prior;
      w.onAck(ack);
    }
  }
  /// Number of datagrams that may be sent at once when the next response begins.
  double burst() {
    w.onSent(kBytes, kBytes, now + 1s);
    return w.burst() / static_cast<double>(kBytes);
  }
};

TEST_F(WanBurstsTest, WhatThePathHasBorneMayGoAtOnce) {
  leaveStart();
  for (uint64_t packets : {10, 20, 40}) {
    respond(packets, 100ms);
    EXPECT_EQ(burst(), 2 * packets);
  }
  EXPECT_NEAR(w.pacingRate(), 1.2 * window() / 0.1, 5) << "the rest is paced as ever";
}

TEST_F(WanBurstsTest, WhatItHasNotMayNot) {
  leaveStart();
  for (uint64_t packets : {10, 20, 40}) respond(packets, 100ms);
  respond(80, 120ms);
  EXPECT_EQ(burst(), 40);
  respond(40, 100ms, 20);
  EXPECT_EQ(burst(), 20);
}

TEST_F(WanBurstsTest, ADownloadIsJudgedByItsFirstRoundTrip) {
  leaveStart();
  now += 1s;
  w.onSent(kBytes, kBytes, now);
  round(100ms, {.samples = 1, .acked = kBytes});
  round(100ms);
  for (int i = 0; i < 3; ++i) round(150ms);
  EXPECT_EQ(burst(), 20);
}

TEST_F(WanBurstsTest, UnderACeilingNothingMay) {
  leaveStart();
  for (int i = 0; i < 2; ++i) {
    lose(30);
    round(100ms, {.acked = 70000});
  }
  ASSERT_NEAR(w.pacingRate(), 0.95 * 700e3, 1);
  EXPECT_EQ(burst(), 0);
}

TEST_F(WanBurstsTest, TheStartDoesNotKnow) {
  respond(10, 100ms);
  EXPECT_EQ(burst(), 0);
  ASSERT_EQ(w.mode(), Wan::Mode::kStart);
}

TEST_F(WanBurstsTest, ResetForgetsWhatThePathHasBorne) {
  leaveStart();
  respond(10, 100ms);
  ASSERT_EQ(burst(), 20);
  w.reset(now);
  delivered = 0;
  leaveStart();
  EXPECT_EQ(burst(), 10);
}

TEST_F(WanTest, LossWithoutAQueueIsNotCongestion) {
  leaveStart();
  double before = window();
  for (int i = 0; i < 10; ++i) {
    lose(2);
    round(105ms);
  }
  EXPECT_GE(window(), before);
}

TEST_F(WanTest, WindowIsWidenedForWhatIsLost) {
  leaveStart();
  round(108ms, {.acked = 108000});
  double before = window();
  lose(10);
  round(108ms, {.acked = 90000,
                .lasts = 90ms});  // rate 1 MB/s; 10 of 100 lost, one eighth of that is counted
  EXPECT_NEAR(window(), before + (before / 1.08 + 9210.1 + 0.0125 * before - before) / 2, 2);
}

TEST_F(WanTest, WithTheTargetQueuedNoLossWidensTheWindow) {
  // Losses of an overflowing buffer must not be compensated, because more data would only overflow
  // it more.
  leaveStart();
  round(110ms, {.acked = 110000});
  double before = window();
  lose(10);
  round(110ms, {.acked = 90000, .lasts = 90ms});
  EXPECT_NEAR(window(), before + (before / 1.1 + 9210.1 - before) / 2, 2);
}

TEST_F(WanTest, AMarkTakesFifteenPercentOncePerRound) {
  leaveStart();
  double before = window();
  w.onMarks(1, now, now);
  w.onMarks(5, now, now);
  round(110ms);
  EXPECT_NEAR(window(), 0.85 * before, 1);
}

/// The loss of packets sent at `sentAt` that amounts to persistent congestion.
LossSample persistentLoss(Time sentAt, Time now) {
  LossSample loss = lossOf(10, sentAt, now);
  loss.persistent = true;
  return loss;
}

TEST_F(WanTest, PersistentCongestionLeavesTheLeastWindowWhichDoublesEachRound) {
  leaveStart();
  w.onLoss(persistentLoss(now, now));
  EXPECT_EQ(w.window(), 4000u);
  EXPECT_EQ(w.mode(), Wan::Mode::kStart);
  now += 100ms;
  for (double expected : {8000., 16000., 32000., 64000.}) {
    round(100ms);
    EXPECT_NEAR(window(), expected, 1);
  }
  EXPECT_EQ(w.mode(), Wan::Mode::kStart) << "ten lost packets of before are not of a round of now";
}

// The ACK that ends a silence covers the packets that arrived before it and counts their marks. The
// packets that it does not cover are declared lost a little later.
TEST_F(WanTest, WhatLeftBeforePersistentCongestionSaysNothingOfTheNewStart) {
  leaveStart();
  Time before = now - 10ms;
  w.onLoss(persistentLoss(before, now));
  AckSample ack;
  ack.now = now;
  ack.bytes = 100000;
  ack.largestSentAt = before;
  ack.rtt = ack.srtt = ack.minRtt = 100ms;
  ack.inFlight = 110000;
  ack.delivered = delivered += 100000;
  w.onAck(ack);
  w.onMarks(3, before, now);
  EXPECT_EQ(w.window(), 4000u);
  now += 100ms;
  round(100ms);
  w.onLoss(persistentLoss(before, now));
  for (double expected : {16000., 32000., 64000.}) {
    round(100ms);
    EXPECT_NEAR(window(), expected, 1);
  }
  EXPECT_EQ(w.mode(), Wan::Mode::kStart);
}

TEST_F(WanTest, PersistentCongestionForgetsNoCeiling) {
  leaveStart();
  for (int i = 0; i < 2; ++i) {
    lose(30);
    round(100ms, {.acked = 70000});
  }
  w.onLoss(persistentLoss(now, now));
  now += 100ms;
  for (int i = 0; i < 5; ++i) round(100ms);
  EXPECT_GT(window(), 100000);
  EXPECT_NEAR(w.pacingRate(), 0.95 * 700e3, 1);
}

// ---- the path's RTT

TEST_F(WanTest, EmptiesTheQueueWhenTheShortestRttWasNotSeenForFiveSeconds) {
  leaveStart();
  Time seen = now - 113ms;
  while (now - seen <= 5s) {
    ASSERT_GT(window(), 100000);
    round(109ms, {.acked = 109000});
  }
  EXPECT_NEAR(window(), 0.85 * 100000, 1500);  // of w * 100/109, about what the path holds
  round(109ms, {.acked = 109000});             // the flight of before
  EXPECT_GT(window(), 100000);
}

TEST_F(WanTest, AnRttNearTheShortestWillDo) {
  leaveStart();
  for (int i = 0; i < 100; ++i) {
    round(101500us, {.inFlight = 0.9, .acked = 101500});
    ASSERT_GT(window(), 90000);
  }
}

TEST_F(WanTest, ForgetsAnRttThatWasNotSeenForTenSeconds) {
  leaveStart();
  for (int i = 0; i < 80; ++i) round(140ms, {.inFlight = 0.5, .minRtt = 100ms});
  EXPECT_EQ(w.baseRtt(), 100ms);
  for (int i = 0; i < 10; ++i) round(140ms, {.inFlight = 0.5, .minRtt = 140ms});
  EXPECT_EQ(w.baseRtt(), 140ms);
}

// ---- competition

/// Cross traffic keeps the queue at 60 ms, whatever this controller does.
struct WanForeignTest : WanTest {
  void SetUp() override { leaveStart(); }
  void compete() {
    for (int i = 0; i < 30 && w.mode() != Wan::Mode::kCompete; ++i) round(160ms);
    ASSERT_EQ(w.mode(), Wan::Mode::kCompete);
  }
};

TEST_F(WanForeignTest, TwoRoundsWithMuchQueuedLowerTheWindow) {
  round(160ms);
  EXPECT_GT(window(), 80000);
  double before = window();
  round(160ms);
  EXPECT_LT(window(), 0.65 * before);  // 0.85 * 100/160 = 0.53
}

// Five packets, of which four counted as lost: only the fifth was in flight.
TEST_F(WanForeignTest, AnAckOfMoreThanWasInFlightEndsTheLook) {
  round(160ms);
  round(160ms);
  double low = window();
  now += 160ms;
  AckSample ack;
  ack.now = now;
  ack.largestSentAt = now - 160ms;
  ack.rtt = ack.srtt = 160ms;
  ack.minRtt = 100ms;
  ack.bytes = 5 * kBytes;
  ack.inFlight = kBytes;
  ack.priorDelivered = delivered;
  ack.delivered = delivered + ack.bytes;
  w.onAck(ack);
  EXPECT_GT(window(), 1.2 * low);
}

TEST_F(WanForeignTest, AQueueThatGoesWasOurs) {
  for (int i = 0; i < 5; ++i) {
    round(160ms);
    round(160ms);
    round(160ms, {.inFlight = 0.9});  // the flight of before
    round(100ms);                     // now the queue is empty
    ASSERT_EQ(w.mode(), Wan::Mode::kModel);
  }
}

TEST_F(WanForeignTest, AQueueThatStaysThreeTimesIsSomebodyElses) {
  round(160ms);
  round(160ms);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(w.mode(), Wan::Mode::kModel);
    round(160ms, {.inFlight = 0.9});
    round(160ms);
  }
  EXPECT_EQ(w.mode(), Wan::Mode::kCompete);
}

TEST_F(WanForeignTest, CompetesAsCubic) {
  compete();
  double before = window();
  lose(1);
  EXPECT_NEAR(window(), 0.7 * before, 1);
}

TEST_F(WanForeignTest, WhileItCompetesNoBurstGoesAtOnce) {
  w.onSent(kBytes, kBytes, now);
  EXPECT_EQ(w.burst(), 10 * kBytes);
  compete();
  w.onSent(kBytes, kBytes, now);
  EXPECT_EQ(w.burst(), 0);
}

TEST_F(WanForeignTest, PersistentCongestionIsCubicsWhileItCompetes) {
  compete();
  w.onLoss(persistentLoss(now, now));
  EXPECT_EQ(w.mode(), Wan::Mode::kCompete);
  EXPECT_LE(w.window(), 4000u);
}

TEST_F(WanForeignTest, LossWithoutTheQueueIsNotCongestionEither) {
  compete();
  double before = window();
  round(129ms, {.inFlight = 0.5});  // the longest was 60 ms
  lose(1);
  EXPECT_EQ(window(), before);
  round(131ms, {.inFlight = 0.5});
  lose(1);
  EXPECT_NEAR(window(), 0.7 * before, 1);
}

TEST_F(WanForeignTest, LooksAfterEightRoundsWhetherTheOtherHasGone) {
  compete();
  for (int i = 0; i < 7; ++i) round(160ms);
  double before = window();
  round(160ms);
  EXPECT_LT(window(), 0.65 * before);
  round(160ms, {.inFlight = 0.9});
  round(114ms);  // 14 of 60 ms are left
  EXPECT_EQ(w.mode(), Wan::Mode::kModel);
}

TEST_F(WanForeignTest, StaysWhileTheOtherIsThere) {
  compete();
  for (int i = 0; i < 8; ++i) round(160ms);
  round(160ms, {.inFlight = 0.9});
  round(116ms);
  EXPECT_EQ(w.mode(), Wan::Mode::kCompete);
  double before = window();
  for (int i = 0; i < 15; ++i) {  // the next look after 16
    round(160ms);
    ASSERT_GE(window(), before);
  }
  round(160ms);
  EXPECT_LT(window(), 0.65 * before);
}

// ---- shared bottlenecks

TEST_F(WanTest, SubflowsThatShareTakeTheTargetOfOneWithTheirRate) {
  round(100ms);
  round(120ms, {.acked = 750000});  // 6.25 MB/s
  w.setSharing(8);
  EXPECT_NEAR(toSeconds(w.target()), 2.5e-3, 1e-8);
}

TEST_F(WanTest, AlphaOfEachOfTwoIsHalfThatOfOneWithTheirRate) {
  leaveStart();
  round(110ms, {.acked = 110000});  // 1 MB/s; together 2 MB/s
  double before = window();
  w.setSharing(2);
  round(110ms, {.acked = 110000});
  // 2 MB/s * 5 ms * cbrt(6.25 / 2) / 2
  EXPECT_NEAR(window(), before + (before / 1.1 + 7310.0 - before) / 2, 3);
}

TEST_F(WanForeignTest, CompetesForItsPartOfAShare) {
  w.setSharing(2);
  compete();
  round(160ms);
  double one = window();
  w.setSharing(1);
  round(160ms);
  EXPECT_GT(window(), one);
}

// ---- the rest

TEST_F(WanTest, ABufferThatHoldsLessThanTheTargetMakesACeiling) {
  leaveStart();
  round(106ms, {.acked = 106000});
  for (int i = 0; i < 3; ++i) {
    lose(12);
    round(106ms, {.acked = 106000});
  }
  EXPECT_DOUBLE_EQ(w.pacingRate(), 0.95 * 1e6);
}

TEST_F(WanTest, LossOfTheStartMakesNoCeiling) {
  // The packets that arrive then were sent one round before, at half the rate.
  round(100ms, {.acked = 20000});
  lose(20);
  round(100ms, {.acked = 20000});
  ASSERT_EQ(w.mode(), Wan::Mode::kModel);
  lose(20);
  round(100ms);
  EXPECT_GT(w.pacingRate(), 1.1 * window() / 0.1);
}

TEST_F(WanTest, ACeilingBindsThePacing) {
  leaveStart();
  for (int i = 0; i < 2; ++i) {
    lose(30);
    round(100ms, {.acked = 70000});
  }
  EXPECT_NEAR(w.pacingRate(), 0.95 * 700e3, 1);
}

// RFC 8511: a mark is answered, whoever else limits the rate.
TEST_F(WanTest, AMarkLowersTheWindowUnderACeilingToo) {
  leaveStart();
  for (int i = 0; i < 2; ++i) {
    lose(30);
    round(100ms, {.acked = 70000});
  }
  round(100ms, {.acked = 66500});
  double before = window();
  for (int i = 0; i < 3; ++i) {  // to below what the ceiling has in flight
    w.onMarks(1, now, now);
    round(100ms, {.acked = 66500});
  }
  EXPECT_NEAR(window(), std::pow(FastWindow::kMarkBeta, 3) * before, 3);
}

TEST_F(WanTest, PacesALittleAboveTheWindow) {
  leaveStart();
  round(110ms, {.acked = 110000});
  EXPECT_NEAR(w.pacingRate(), 1.2 * window() / 0.11, 5);
}

TEST_F(WanTest, KeepsWhatItKnowsOverAPause) {
  leaveStart();
  double before = window();
  now += 30s;
  w.onSent(kBytes, kBytes, now);
  EXPECT_EQ(window(), before);
  EXPECT_EQ(w.mode(), Wan::Mode::kModel);
}

TEST_F(WanTest, TheFirstAckAfterAPauseSaysNothing) {
  leaveStart();
  rounds(3, 105ms);
  uint64_t before = w.window();
  now += 6s;  // it is also time to measure the RTT without a queue
  w.onSent(1000, 1000, now);
  now += 100ms;
  AckSample ack;
  ack.now = now;
  ack.bytes = ack.inFlight = 1000;
  ack.rtt = ack.srtt = ack.minRtt = 100ms;
  ack.priorDelivered = delivered;
  ack.delivered = delivered += 1000;
  w.onAck(ack);  // 10 KB/s
  EXPECT_EQ(w.window(), before);
}

TEST_F(WanTest, ResetForgetsAll) {
  leaveStart();
  w.reset(now);
  EXPECT_EQ(w.window(), 10000u);
  EXPECT_EQ(w.baseRtt(), Duration{});
  EXPECT_EQ(w.mode(), Wan::Mode::kStart);
}

}  // namespace
}  // namespace braid::wan_test
