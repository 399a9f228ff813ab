#include "scheduler/rate/cubic.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/scheduler/rate/controller_samples.h"

namespace braid::cubic_test {
namespace {

/// The state after a loss at a window of 10 datagrams: window 7, W_max 10, K = cbrt(3 / 0.4) =
/// 1.95743 s.
struct CubicTest : testing::Test {
  Cubic c{kBytes};
  void SetUp() override { c.onLoss(lossOf(1, at(1s), at(1100ms))); }
  /// An ACK of `bytes` bytes arrives at `t`; RTT 100 ms.
  void ack(uint64_t bytes, Duration t) { c.onAck(ackOf(c, bytes, at(t) - 100ms)); }
};

TEST_F(CubicTest, AReductionLeavesSeventyPercent) {
  EXPECT_EQ(c.window(), 7000u);
  c.onMarks(1, at(1100ms), at(1200ms));
  EXPECT_EQ(c.window(), 4900u);
}

TEST_F(CubicTest, WMaxIsTheWindowBefore) {
  EXPECT_EQ(c.wMax(), 10);
}

TEST_F(CubicTest, FastConvergence) {
  c.onLoss(lossOf(1, at(1100ms), at(1200ms)));
  EXPECT_DOUBLE_EQ(c.wMax(), 5.95);  // 7 < 10: 7 * (1 + 0.7) / 2
  EXPECT_EQ(c.window(), 4900u);
}

TEST_F(CubicTest, K) {
  ack(1, 1200ms);
  EXPECT_NEAR(c.k(), 1.957434, 1e-6);
}

TEST_F(CubicTest, RenoFriendlyRegion) {
  ack(1000, 1200ms);  // W_cubic(0) = 7 < W_est = 7 + 0.529412 / 7
  EXPECT_NEAR(c.wEst(), 7.075630, 1e-6);
  EXPECT_EQ(c.window(), 7075u);
}

TEST_F(CubicTest, RenoFriendlyWindowGrowsFasterOnceItIsWhereItWas) {
  ack(40000, 1200ms);  // 7 + 0.529412 * 40 / 7 = 10.025 > 10
  double before = c.wEst(), window = static_cast<double>(c.window()) / kBytes;
  ASSERT_GT(before, 10);
  ack(1000, 1200ms);
  EXPECT_NEAR(c.wEst() - before, 1 / window, 1e-4);
}

TEST_F(CubicTest, AsRfc8312HasItTheRenoFriendlyWindowGrowsByAlphaForGood) {
  c.growAsRfc8312();
  ack(40000, 1200ms);
  double before = c.wEst(), window = static_cast<double>(c.window()) / kBytes;
  ASSERT_GT(before, 10);
  ack(1000, 1200ms);
  EXPECT_NEAR(c.wEst() - before, Cubic::kAlpha / window, 1e-4);
}

TEST_F(CubicTest, ConcaveRegionGoesWhereTheCurveIsInOneRtt) {
  ack(1, 1200ms);
  ack(1000, 2200ms);  // W_cubic(1.1) = 10 - 0.4 * 0.857434^3 = 9.747848; (9.747848 - 7) / 7
  EXPECT_NEAR(static_cast<double>(c.window()), 7392, 2);
}

TEST_F(CubicTest, NoMoreThanHalfTheWindowPerRtt) {
  ack(1, 1200ms);
  ack(1000, 11200ms);  // W_cubic is above 200: the target is 10.5; 3.5 / 7
  EXPECT_NEAR(static_cast<double>(c.window()), 7500, 2);
}

TEST_F(CubicTest, UnusedTimeIsNoPartOfTheEpoch) {
  ack(1, 1200ms);
  AckSample unused = ackOf(c, 1, at(6100ms));  // 5 s later
  unused.inFlight = 0;
  c.onAck(unused);
  ack(1000, 7200ms);  // t = 1 as in the test of the concave region
  EXPECT_NEAR(static_cast<double>(c.window()), 7392, 2);
}

TEST(Cubic, WithoutALossTheFirstEpochStartsFromItsWindow) {
  Cubic c(kBytes);
  LossSample lost = lossOf(3, at(1s), at(2s));
  lost.persistent = true;
  c.onLoss(lost);  // threshold 7000, window 2000, all else forgotten
  c.onAck(ackOf(c, 2000, at(2s)));
  c.onAck(ackOf(c, 4000, at(2100ms)));
  ASSERT_EQ(c.window(), 7000u) << "slow start up to 0.7 of the window before";
  c.onAck(ackOf(c, 1, at(2200ms)));
  EXPECT_EQ(c.k(), 0);
  EXPECT_NEAR(c.wMax(), 7, 1e-9);
}

TEST(Cubic, SpuriousLossBringsTheCurveBack) {
  Cubic c(kBytes);
  c.onLoss(lossOf(1, at(1s), at(1100ms)));
  c.onLoss(lossOf(1, at(1100ms), at(1200ms)));
  c.onSpuriousLoss(at(1100ms), at(1250ms));
  EXPECT_EQ(c.window(), 7000u);
  EXPECT_EQ(c.wMax(), 10);
}

TEST(Cubic, MinimumWindow) {
  Cubic c(kBytes);
  squeeze(c);
  EXPECT_EQ(c.window(), 2000u);
}

TEST_F(CubicTest, HalfAShareTakesASixteenthOfC) {
  c.setShare(0.5);
  ack(1, 1200ms);
  EXPECT_NEAR(c.k(), 4.932424, 1e-6);  // cbrt(3 / 0.025)
}

TEST_F(CubicTest, HalfAShareGrowsAQuarterInTheRenoFriendlyRegion) {
  c.setShare(0.5);
  ack(1000, 1200ms);
  EXPECT_NEAR(c.wEst(), 7 + 0.529412 / 4 / 7, 1e-6);
}

}  // namespace
}  // namespace braid::cubic_test
