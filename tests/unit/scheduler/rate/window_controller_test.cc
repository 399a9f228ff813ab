#include "scheduler/rate/window_controller.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/scheduler/rate/controller_samples.h"

namespace braid::window_controller_test {
namespace {

/// Grows by 100 bytes per ACK, keeps 80 % after a mark.
struct Plain final : WindowController {
  explicit Plain(uint64_t datagram = kBytes, uint64_t initial = 10)
      : WindowController(datagram, initial) {}
  void grow(const AckSample&) override { setWindow(cwnd() + 100); }
  double afterMark() const override { return cwnd() * 0.8; }
};

TEST(WindowController, InitialWindow) {
  EXPECT_EQ(Plain(1200).window(), 12000u);  // 10 * 1200 < 14720
  EXPECT_EQ(Plain(1500).window(), 14720u);  // 14720 < 10 * 1500
  EXPECT_EQ(Plain(9000).window(), 18000u);  // two datagrams > 14720
  EXPECT_EQ(Plain(1000, 2).window(), 2000u);
}

TEST(WindowController, SlowStartGrowsByTheAckedBytes) {
  Plain c;
  c.onAck(ackOf(c, 3000, at(1s)));
  EXPECT_EQ(c.window(), 13000u);
  EXPECT_TRUE(c.inSlowStart());
}

TEST(WindowController, SlowStartEndsAtTheThreshold) {
  Plain c;
  LossSample lost = lossOf(3, at(1s), at(1100ms));
  lost.persistent = true;
  c.onLoss(lost);
  EXPECT_EQ(c.window(), 2000u);
  c.onAck(ackOf(c, 2000, at(1200ms)));
  EXPECT_EQ(c.window(), 4000u);
  c.onAck(ackOf(c, 4000, at(1300ms)));
  EXPECT_EQ(c.window(), 5000u) << "half of the 10000 before";
  EXPECT_FALSE(c.inSlowStart());
  c.onAck(ackOf(c, 4000, at(1400ms)));
  EXPECT_EQ(c.window(), 5100u);
}

TEST(WindowController, OneReductionPerWindowOnMarks) {
  Plain c;
  c.onMarks(0, at(1s), at(1100ms));
  EXPECT_EQ(c.window(), 10000u);
  c.onMarks(3, at(1s), at(1100ms));
  EXPECT_EQ(c.window(), 8000u);
  EXPECT_FALSE(c.inSlowStart());
  c.onMarks(2, at(1099ms), at(1199ms));
  EXPECT_EQ(c.window(), 8000u) << "sent before the cut";
  c.onMarks(2, at(1100ms), at(1200ms));
  EXPECT_EQ(c.window(), 6400u) << "what leaves with the ACK of the cut is of the next window";
}

TEST(WindowController, OneReductionPerWindowOnLoss) {
  Plain c;
  c.onLoss(lossOf(1, at(1s), at(1100ms)));
  EXPECT_EQ(c.window(), 5000u);
  c.onLoss(lossOf(4, at(1099ms), at(1190ms)));
  EXPECT_EQ(c.window(), 5000u);
  c.onLoss(lossOf(1, at(1100ms), at(1200ms)));
  EXPECT_EQ(c.window(), 2500u);
}

TEST(WindowController, AMarkInTheWindowOfALossDoesNotCutAgain) {
  Plain c;
  c.onLoss(lossOf(1, at(1s), at(1100ms)));
  c.onMarks(1, at(1050ms), at(1150ms));
  EXPECT_EQ(c.window(), 5000u);
}

TEST(WindowController, ALossInTheWindowOfAMarkHalvesAllTheSame) {
  Plain c;
  c.onMarks(1, at(1s), at(1100ms));
  c.onLoss(lossOf(1, at(1050ms), at(1150ms)));
  EXPECT_EQ(c.window(), 4000u);
}

TEST(WindowController, NoGrowthInTheWindowOfAReduction) {
  Plain c;
  c.onMarks(1, at(1s), at(1100ms));
  c.onAck(ackOf(c, 1000, at(1099ms)));
  EXPECT_EQ(c.window(), 8000u);
  c.onAck(ackOf(c, 1000, at(1100ms)));
  EXPECT_EQ(c.window(), 8100u);
}

TEST(WindowController, MinimumWindow) {
  Plain c;
  squeeze(c);
  EXPECT_EQ(c.window(), 2000u);
}

TEST(WindowController, AWindowInUseForLessThanHalfDoesNotGrow) {
  Plain c;
  AckSample ack = ackOf(c, 1000, at(1s));
  ack.inFlight = 4999;
  c.onAck(ack);
  EXPECT_EQ(c.window(), 10000u);
  ack.inFlight = 5000;
  c.onAck(ack);
  EXPECT_EQ(c.window(), 11000u);
}

TEST(WindowController, ASenderShortOfDataUsesAWindowThatThreeDatagramsWouldFill) {
  Plain c;
  c.onMarks(1, at(1s), at(1100ms));  // 8000
  AckSample ack = ackOf(c, 1000, at(1200ms));
  ack.appLimited = true;
  ack.inFlight = 4999;
  c.onAck(ack);
  EXPECT_EQ(c.window(), 8000u);
  ack.inFlight = 5000;
  c.onAck(ack);
  EXPECT_EQ(c.window(), 8100u);
}

TEST(WindowController, ThreeDatagramsDoNotMakeASmallWindowLookUsed) {
  Plain c;
  Time t = squeeze(c);  // 2000
  AckSample ack = ackOf(c, 500, t);
  ack.appLimited = true;
  ack.inFlight = 999;
  c.onAck(ack);
  EXPECT_EQ(c.window(), 2000u);
}

TEST(WindowController, IdleRestartsFromTheInitialWindow) {
  Plain c;
  c.onSent(1000, 1000, at(500ms));
  c.onAck(ackOf(c, 10000, at(1s)));  // 20000, at 1.1 s
  c.onSent(1000, 1000, at(2100ms));
  EXPECT_EQ(c.window(), 20000u) << "idle for one second is not longer than one second";
  c.onSent(1000, 1000, at(3101ms));
  EXPECT_EQ(c.window(), 10000u);
  c.onAck(ackOf(c, 10000, at(3101ms)));
  EXPECT_EQ(c.window(), 15000u) << "slow start up to three quarters of 20000";
  EXPECT_FALSE(c.inSlowStart());
}

TEST(WindowController, IdleTimeIsFourRttsOnSlowPaths) {
  Plain c;
  c.onAck(ackOf(c, 10000, at(1s), 600ms));  // at 1.6 s
  c.onSent(1000, 1000, at(4s));
  EXPECT_EQ(c.window(), 20000u);
  c.onSent(1000, 1000, at(6401ms));
  EXPECT_EQ(c.window(), 10000u);
}

TEST(WindowController, DataInFlightIsNotIdle) {
  Plain c;
  c.onAck(ackOf(c, 10000, at(1s)));
  c.onSent(1000, 1001, at(9s));
  EXPECT_EQ(c.window(), 20000u);
}

TEST(WindowController, SpuriousLossGivesTheWindowBack) {
  Plain c;
  c.onLoss(lossOf(2, at(1s), at(1100ms)));
  c.onSpuriousLoss(at(990ms), at(1150ms));
  EXPECT_EQ(c.window(), 5000u) << "one of two is still lost";
  c.onSpuriousLoss(at(1s), at(1150ms));
  EXPECT_EQ(c.window(), 10000u);
  EXPECT_TRUE(c.inSlowStart());
}

TEST(WindowController, MarksKeepWhatALossTook) {
  Plain c;
  c.onLoss(lossOf(1, at(1s), at(1100ms)));
  c.onMarks(1, at(1100ms), at(1200ms));
  c.onSpuriousLoss(at(1s), at(1250ms));
  EXPECT_EQ(c.window(), 4000u);
}

TEST(WindowController, PersistentCongestionFallsToTheMinimum) {
  Plain c;
  LossSample lost = lossOf(9, at(1s), at(2s));
  lost.persistent = true;
  c.onLoss(lost);
  EXPECT_EQ(c.window(), 2000u);
  EXPECT_TRUE(c.inSlowStart());
}

TEST(WindowController, PacingRate) {
  Plain c;
  EXPECT_TRUE(std::isinf(c.pacingRate()));
  c.onAck(ackOf(c, 2000, at(1s)));
  EXPECT_DOUBLE_EQ(c.pacingRate(), 2 * 12000 / 0.1);
  c.onMarks(1, at(1s), at(1100ms));
  EXPECT_DOUBLE_EQ(c.pacingRate(), 1.25 * 9600 / 0.1);
}

TEST(WindowController, ResetForgetsAll) {
  Plain c;
  c.onAck(ackOf(c, 2000, at(1s)));
  c.onMarks(1, at(1s), at(1100ms));
  c.reset(at(2s));
  EXPECT_EQ(c.window(), 10000u);
  EXPECT_TRUE(c.inSlowStart());
  EXPECT_TRUE(std::isinf(c.pacingRate()));
}

}  // namespace
}  // namespace braid::window_controller_test
