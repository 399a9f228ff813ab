#include "scheduler/rate/newreno.h"

#include <gtest/gtest.h>

#include <cmath>

namespace braid::newreno_test {
namespace {

constexpr Time at(Duration d) {
  return Time{} + d;
}
constexpr uint64_t kDatagram = 1200;

/// An ACK of a sender that fills its window.
AckSample ack(const NewReno& reno, uint64_t bytes, Time sentAt) {
  return {.now = sentAt + 100ms,
          .bytes = bytes,
          .largestSentAt = sentAt,
          .rtt = 100ms,
          .srtt = 100ms,
          .minRtt = 100ms,
          .inFlight = reno.window()};
}

LossSample loss(uint64_t packets, Time sentAt, Time now) {
  return {.now = now, .bytes = packets * kDatagram, .packets = packets, .largestSentAt = sentAt};
}

TEST(NewReno, InitialWindow) {
  EXPECT_EQ(NewReno(1200).window(), 12000u);  // 10 * 1200 < 14720
  EXPECT_EQ(NewReno(1472).window(), 14720u);  // both are 14720
  EXPECT_EQ(NewReno(1500).window(), 14720u);  // 14720 < 10 * 1500
  EXPECT_EQ(NewReno(9000).window(), 18000u);  // two datagrams > 14720
  EXPECT_EQ(NewReno(1200, 4).window(), 4800u);
  EXPECT_EQ(NewReno(1500, 4).window(), 5888u);  // 4 * 1472 < 6000
}

TEST(NewReno, SlowStartGrowsByTheAckedBytes) {
  NewReno reno(kDatagram);
  reno.onAck(ack(reno, 2400, at(1s)));
  EXPECT_EQ(reno.window(), 14400u);
  reno.onAck(ack(reno, 14400, at(1100ms)));
  EXPECT_EQ(reno.window(), 28800u);
}

TEST(NewReno, LossHalvesOncePerRecoveryPeriod) {
  NewReno reno(kDatagram);
  reno.onLoss(loss(1, at(1s), at(1100ms)));
  EXPECT_EQ(reno.window(), 6000u);
  EXPECT_FALSE(reno.inSlowStart());
  reno.onLoss(loss(3, at(1050ms), at(1150ms)));
  reno.onLoss(loss(3, at(1100ms), at(1200ms)));
  EXPECT_EQ(reno.window(), 6000u) << "sent before the period began, or as it began";
  reno.onLoss(loss(1, at(1101ms), at(1250ms)));
  EXPECT_EQ(reno.window(), 3000u);
}

TEST(NewReno, NoGrowthInRecovery) {
  NewReno reno(kDatagram);
  reno.onLoss(loss(1, at(1s), at(1100ms)));
  reno.onAck(ack(reno, 6000, at(1100ms)));
  EXPECT_EQ(reno.window(), 6000u);
  reno.onAck(ack(reno, 6000, at(1101ms)));
  EXPECT_EQ(reno.window(), 7200u);
}

TEST(NewReno, CongestionAvoidanceGrowsOneDatagramPerWindow) {
  NewReno reno(kDatagram);
  reno.onLoss(loss(1, at(1s), at(1100ms)));
  // 1200 * 1200 / 6000 = 240
  reno.onAck(ack(reno, 1200, at(1200ms)));
  EXPECT_EQ(reno.window(), 6240u);
  // 1200 * 1200 / 6240 = 230.77, the rest is kept
  reno.onAck(ack(reno, 1200, at(1200ms)));
  EXPECT_EQ(reno.window(), 6470u);
  NewReno tiny(kDatagram);
  tiny.onLoss(loss(1, at(1s), at(1100ms)));
  for (int i = 0; i < 6000; ++i) tiny.onAck(ack(tiny, 1, at(1200ms)));
  EXPECT_GE(tiny.window(), 7000u) << "ACKs of single bytes count too";
  EXPECT_LE(tiny.window(), 7200u);
}

TEST(NewReno, MinimumWindow) {
  NewReno reno(kDatagram);
  Time t = at(1s);
  for (int i = 0; i < 10; ++i, t += 1s) reno.onLoss(loss(1, t, t + 100ms));
  EXPECT_EQ(reno.window(), 2 * kDatagram);
}

TEST(NewReno, PersistentCongestionFallsToTheMinimumAndSlowStarts) {
  NewReno reno(kDatagram);
  LossSample lost = loss(5, at(3s), at(4s));
  lost.persistent = true;
  reno.onLoss(lost);
  EXPECT_EQ(reno.window(), 2400u);
  EXPECT_TRUE(reno.inSlowStart());
  reno.onAck(ack(reno, 1200, at(3s)));
  EXPECT_EQ(reno.window(), 3600u) << "the recovery period is over";
  reno.onAck(ack(reno, 2400, at(4s)));
  EXPECT_EQ(reno.window(), 6000u);
  EXPECT_FALSE(reno.inSlowStart()) << "threshold is half of 12000";
}

TEST(NewReno, MarksReduceLikeALoss) {
  NewReno reno(kDatagram);
  reno.onMarks(0, at(1s), at(1100ms));
  EXPECT_EQ(reno.window(), 12000u);
  reno.onMarks(7, at(1s), at(1100ms));
  EXPECT_EQ(reno.window(), 6000u);
  reno.onMarks(1, at(1050ms), at(1150ms));
  EXPECT_EQ(reno.window(), 6000u);
  reno.onMarks(1, at(1101ms), at(1201ms));
  EXPECT_EQ(reno.window(), 3000u);
}

TEST(NewReno, UnusedWindowDoesNotGrow) {
  NewReno reno(kDatagram);
  AckSample idle = ack(reno, 1200, at(1s));
  idle.inFlight = 5999;
  reno.onAck(idle);
  EXPECT_EQ(reno.window(), 12000u);
  idle.inFlight = 6000;
  reno.onAck(idle);
  EXPECT_EQ(reno.window(), 13200u) << "slow start: half the window is use enough";
}

TEST(NewReno, UnusedWindowDoesNotGrowInCongestionAvoidance) {
  NewReno reno(kDatagram);
  reno.onLoss(loss(1, at(1s), at(1100ms)));  // 6000
  AckSample sample = ack(reno, 1200, at(1200ms));
  sample.appLimited = true;
  sample.inFlight = 2399;
  reno.onAck(sample);
  EXPECT_EQ(reno.window(), 6000u);
  sample.inFlight = 2400;  // three datagrams below the window
  reno.onAck(sample);
  EXPECT_EQ(reno.window(), 6240u);
  sample.appLimited = false;
  sample.inFlight = 3119;
  reno.onAck(sample);
  EXPECT_EQ(reno.window(), 6240u) << "held back by something else than data: half the window";
}

TEST(NewReno, UndoWhenEveryLossWasSpurious) {
  NewReno reno(kDatagram);
  reno.onLoss(loss(2, at(1s), at(1100ms)));
  reno.onLoss(loss(1, at(1050ms), at(1120ms)));
  EXPECT_EQ(reno.window(), 6000u);
  reno.onSpuriousLoss(at(1s), at(1130ms));
  reno.onSpuriousLoss(at(1s), at(1130ms));
  EXPECT_EQ(reno.window(), 6000u) << "one of three may be a real loss";
  reno.onSpuriousLoss(at(1050ms), at(1140ms));
  EXPECT_EQ(reno.window(), 12000u);
  EXPECT_TRUE(reno.inSlowStart());
  reno.onAck(ack(reno, 1200, at(1060ms)));
  EXPECT_EQ(reno.window(), 13200u) << "and its recovery period never was";
}

TEST(NewReno, UndoOnlyOfTheLastReduction) {
  NewReno reno(kDatagram);
  reno.onLoss(loss(1, at(1s), at(1100ms)));
  reno.onLoss(loss(1, at(1200ms), at(1300ms)));
  EXPECT_EQ(reno.window(), 3000u);
  reno.onSpuriousLoss(at(1s), at(1310ms));
  EXPECT_EQ(reno.window(), 3000u) << "that loss made the reduction before";
  reno.onSpuriousLoss(at(1200ms), at(1320ms));
  EXPECT_EQ(reno.window(), 6000u);
  reno.onSpuriousLoss(at(1200ms), at(1320ms));
  EXPECT_EQ(reno.window(), 6000u) << "once";
}

TEST(NewReno, MarkForbidsUndo) {
  NewReno reno(kDatagram);
  reno.onLoss(loss(1, at(1s), at(1100ms)));
  reno.onMarks(1, at(1050ms), at(1150ms));
  reno.onSpuriousLoss(at(1s), at(1160ms));
  EXPECT_EQ(reno.window(), 6000u);
}

TEST(NewReno, UncountedLossAndPersistentCongestionForbidUndo) {
  NewReno reno(kDatagram);
  reno.onLoss(loss(0, at(1s), at(1100ms)));
  reno.onSpuriousLoss(at(1s), at(1160ms));
  EXPECT_EQ(reno.window(), 6000u);
  NewReno outage(kDatagram);
  LossSample lost = loss(1, at(3s), at(4s));
  lost.persistent = true;
  outage.onLoss(lost);
  outage.onSpuriousLoss(at(3s), at(5s));
  EXPECT_EQ(outage.window(), 2400u);
}

TEST(NewReno, UndoNeverShrinks) {
  NewReno reno(kDatagram);
  reno.onLoss(loss(1, at(1s), at(1100ms)));
  for (int i = 0; i < 200; ++i) reno.onAck(ack(reno, 6000, at(1200ms)));
  uint64_t grown = reno.window();
  ASSERT_GT(grown, 12000u);
  reno.onSpuriousLoss(at(1s), at(5s));
  EXPECT_EQ(reno.window(), grown);
}

TEST(NewReno, PacingRate) {
  NewReno reno(kDatagram);
  EXPECT_TRUE(std::isinf(reno.pacingRate()));
  AckSample sample = ack(reno, 0, at(1s));
  reno.onAck(sample);
  EXPECT_DOUBLE_EQ(reno.pacingRate(), 2 * 12000 / 0.1);
  reno.onLoss(loss(1, at(1s), at(1100ms)));
  EXPECT_DOUBLE_EQ(reno.pacingRate(), 1.25 * 6000 / 0.1);
}

TEST(NewReno, ResetForgets) {
  NewReno reno(kDatagram);
  reno.onAck(ack(reno, 1200, at(1s)));
  reno.onLoss(loss(1, at(1s), at(1100ms)));
  reno.reset(at(2s));
  EXPECT_EQ(reno.window(), 12000u);
  EXPECT_TRUE(reno.inSlowStart());
  EXPECT_TRUE(std::isinf(reno.pacingRate()));
  reno.onSpuriousLoss(at(1s), at(3s));
  EXPECT_EQ(reno.window(), 12000u);
}

}  // namespace
}  // namespace braid::newreno_test
