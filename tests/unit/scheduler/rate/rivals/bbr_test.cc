#include "scheduler/rate/rivals/bbr.h"

#include <gtest/gtest.h>

namespace braid::bbr_test {
namespace {

constexpr uint64_t kDatagram = 1000;
constexpr Duration kRtt = 40ms;
constexpr double kRate = 1e6;  // bytes per second: the bandwidth-delay product is 40,000 bytes

/// A path with rate `kRate` and RTT `kRtt`. Each call is one round trip with one ACK per `kDatagram
/// * 4` bytes.
struct BbrTest : testing::Test {
  Bbr bbr{kDatagram};
  Time now = Time{} + 1s;
  uint64_t delivered = 0;

  struct Round {
    double rate = kRate;
    Duration rtt = kRtt;
    uint64_t inFlight = 40'000;
    bool appLimited = false;
    uint64_t lost = 0;
    bool marked = false;
  };
  void round(Round r) {
    uint64_t begin = delivered;
    if (r.lost > 0) {
      LossSample loss;
      loss.now = now;
      loss.bytes = r.lost;
      bbr.onLoss(loss);
    }
    if (r.marked) bbr.onMarks(1, now, now);
    for (int i = 0; i < 10; ++i) {
      now += kRtt / 10;
      delivered += 4 * kDatagram;
      AckSample ack;
      ack.now = now;
      ack.bytes = 4 * kDatagram;
      ack.rtt = ack.srtt = r.rtt;
      ack.minRtt = kRtt;
      ack.inFlight = r.inFlight;
      ack.delivered = delivered;
      ack.priorDelivered = begin;  // of the round before
      ack.deliveryRate = r.rate;
      ack.appLimited = r.appLimited;
      bbr.onAck(ack);
    }
  }
  void rounds(int n, Round r) {
    for (int i = 0; i < n; ++i) round(r);
  }
  /// Runs through the phases Startup and Drain.
  void settle() {
    rounds(6, {});
    ASSERT_EQ(bbr.state(), Bbr::State::kProbe);
  }
};

TEST_F(BbrTest, BeginsWithTenDatagramsUnpaced) {
  EXPECT_EQ(bbr.window(), 10 * kDatagram);
  EXPECT_EQ(bbr.pacingRate(), std::numeric_limits<double>::infinity());
}

TEST_F(BbrTest, PacesTheStartAtTwoOverLnTwo) {
  round({});
  EXPECT_EQ(bbr.state(), Bbr::State::kStartup);
  EXPECT_NEAR(bbr.pacingRate(), 0.99 * 2.885 * kRate, 1);
}

// Section 4.3.2.2: three rounds with growth below a quarter.
TEST_F(BbrTest, TheStartGoesOnWhileTheRateGrowsByAQuarter) {
  double rate = 1e5;
  for (int i = 0; i < 20; ++i, rate *= 1.3) round({.rate = rate});
  EXPECT_EQ(bbr.state(), Bbr::State::kStartup);
  rounds(2, {.rate = rate});
  EXPECT_EQ(bbr.state(), Bbr::State::kStartup);
  rounds(3, {.rate = rate, .inFlight = 1 << 30});
  EXPECT_EQ(bbr.state(), Bbr::State::kDrain);
}

TEST_F(BbrTest, APlateauOfASenderWithNothingToSendProvesNothing) {
  rounds(30, {.appLimited = true});
  EXPECT_EQ(bbr.state(), Bbr::State::kStartup);
}

// RFC 9406 section 4.2: min RTT of the round at or above the minimum by max(4 ms, min(RTT/8, 16
// ms)) = 5 ms.
TEST_F(BbrTest, AQueueEndsTheStartOfASenderWithNothingToSend) {
  rounds(5, {.rtt = kRtt + 5ms - 1us, .appLimited = true});
  EXPECT_EQ(bbr.state(), Bbr::State::kStartup);
  rounds(2, {.rtt = kRtt + 5ms, .appLimited = true});
  EXPECT_NE(bbr.state(), Bbr::State::kStartup);
}

TEST_F(BbrTest, DrainsUntilOneBandwidthDelayProductIsInFlight) {
  rounds(6, {.inFlight = 100'000});
  EXPECT_EQ(bbr.state(), Bbr::State::kDrain);
  EXPECT_NEAR(bbr.pacingRate(), 0.99 * kRate / 2.885, 1);
  round({.inFlight = 40'000});
  EXPECT_EQ(bbr.state(), Bbr::State::kProbe);
}

// Section 4.2.3.2, with what arrives while ACKs wait (kAckClump) and three datagrams.
TEST_F(BbrTest, TheWindowIsTwoBandwidthDelayProducts) {
  settle();
  rounds(20, {});
  EXPECT_NEAR(static_cast<double>(bbr.window()), 2 * 40'000 + kRate * 0.01 + 3000, 1);
}

// Section 4.3.4.1: one phase with a higher gain, one with a lower gain, then six with gain 1.
TEST_F(BbrTest, ProbesInTurns) {
  settle();
  int up = 0, down = 0, even = 0;
  for (int i = 0; i < 400; ++i) {
    round({.inFlight = bbr.pacingRate() > kRate ? 50'001u : 40'000u});
    double gain = bbr.pacingRate() / (0.99 * kRate);
    up += gain > 1.2;
    down += gain < 0.8;
    even += gain > 0.99 && gain < 1.01;
  }
  EXPECT_EQ(up + down + even, 400);
  EXPECT_GT(up, 20);
  EXPECT_LE(down, up + 1);
  EXPECT_GT(even, 4 * up);
}

TEST_F(BbrTest, RandomLossDoesNotSlowItDown) {
  settle();
  rounds(20, {});
  uint64_t window = bbr.window();
  double rate = bbr.bandwidth();
  rounds(50, {.lost = 4000});  // 9 % without a queue
  EXPECT_EQ(bbr.window(), window);
  EXPECT_EQ(bbr.bandwidth(), rate);
}

TEST_F(BbrTest, LossWithAQueueBoundsTheDataInFlight) {
  settle();
  rounds(20, {});
  uint64_t window = bbr.window();
  rounds(2, {.rtt = 2 * kRtt, .lost = 4000});
  EXPECT_LT(bbr.window(), window);
  rounds(50, {.rtt = 2 * kRtt, .lost = 4000});
  EXPECT_GE(bbr.window(), 40'000u) << "one bandwidth-delay product is never too much";
}

TEST_F(BbrTest, MuchLossIsAPolicer) {
  settle();
  rounds(20, {});
  uint64_t window = bbr.window();
  rounds(2, {.lost = 15'000});  // 27 % without a queue
  EXPECT_LT(bbr.window(), window);
}

TEST_F(BbrTest, MarksBoundTheDataInFlight) {
  settle();
  rounds(20, {});
  uint64_t window = bbr.window();
  rounds(2, {.marked = true});
  EXPECT_LT(bbr.window(), window);
}

TEST_F(BbrTest, TheBoundGoesWhenProbesMeetNoLoss) {
  settle();
  rounds(20, {});
  uint64_t window = bbr.window();
  rounds(2, {.rtt = 2 * kRtt, .lost = 4000});
  rounds(200, {.inFlight = 50'001});
  EXPECT_EQ(bbr.window(), window);
}

TEST_F(BbrTest, FollowsABottleneckThatGetsSlower) {
  settle();
  rounds(20, {.rate = kRate / 4, .inFlight = 10'000});
  EXPECT_NEAR(bbr.bandwidth(), kRate / 4, 1);
}

TEST_F(BbrTest, AnIdleSenderForgetsNothing) {
  settle();
  rounds(50, {.rate = kRate / 100, .inFlight = 1000, .appLimited = true});
  EXPECT_NEAR(bbr.bandwidth(), kRate, 1);
}

TEST_F(BbrTest, PersistentCongestionStartsFromFourDatagrams) {
  settle();
  LossSample loss;
  loss.bytes = 40'000;
  loss.persistent = true;
  bbr.onLoss(loss);
  EXPECT_EQ(bbr.window(), Bbr::kMinDatagrams * kDatagram);
}

TEST_F(BbrTest, ResetForgetsEverything) {
  settle();
  bbr.reset(now);
  EXPECT_EQ(bbr.state(), Bbr::State::kStartup);
  EXPECT_EQ(bbr.window(), 10 * kDatagram);
  EXPECT_EQ(bbr.bandwidth(), 0);
}

}  // namespace
}  // namespace braid::bbr_test
