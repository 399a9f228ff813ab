#include "tunnel/subflow/path_estimate.h"

#include <gtest/gtest.h>

#include <deque>

namespace braid::delivery_rate_test {
namespace {

constexpr Duration kRtt = 40ms;

struct DeliveryRateTest : testing::Test {
  Time now = Time{} + 1s;
  DeliveryRate rate{now};
  std::deque<SentPacket> flight;

  void send(uint32_t bytes = 1000) {
    SentPacket p;
    p.sentAt = now;
    p.bytes = bytes;
    rate.onSent(p, flight.empty(), now);
    flight.push_back(p);
  }
  /// An ACK of the `count` oldest packets.
  AckSample ack(size_t count = 1) {
    AckSample sample;
    for (; count > 0; --count) {
      rate.onAcked(flight.front(), sample, now);
      flight.pop_front();
    }
    return sample;
  }
};

TEST_F(DeliveryRateTest, OnePacketMakesItsBytesInARoundTrip) {
  send();
  now += kRtt;
  AckSample sample = ack();
  EXPECT_EQ(sample.bytes, 1000u);
  EXPECT_DOUBLE_EQ(sample.deliveryRate, 1000 / 0.040);
  EXPECT_DOUBLE_EQ(rate.latest(), 1000 / 0.040);
  EXPECT_EQ(rate.delivered(), 1000u);
}

TEST_F(DeliveryRateTest, ASteadyFlightShowsTheRateOfThePath) {
  for (int i = 0; i < 200; ++i) {  // 1000 bytes each millisecond; the answers come one by one
    if (flight.size() == 40) {
      double sample = ack().deliveryRate;
      if (i >= 100) {
        EXPECT_NEAR(sample, 1e6, 1e3);
      }
    }
    send();
    now += 1ms;
  }
}

TEST_F(DeliveryRateTest, AcksThatComeTogetherDoNotInflateTheRate) {
  for (int i = 0; i < 10; ++i) {
    send();
    now += 10ms;
  }
  AckSample sample = ack(10);
  EXPECT_EQ(sample.bytes, 10'000u);
  EXPECT_LE(sample.deliveryRate, 10'000 / 0.090) << "the sending took that long";
}

TEST_F(DeliveryRateTest, AnIdlePauseIsNotCounted) {
  send();
  now += kRtt;
  ack();
  now += 10s;
  send();
  now += kRtt;
  EXPECT_DOUBLE_EQ(ack().deliveryRate, 1000 / 0.040);
}

TEST_F(DeliveryRateTest, SamplesAreAppLimitedUntilTheFlightIsDelivered) {
  send();
  rate.setAppLimited(1000);
  send();
  now += kRtt;
  EXPECT_FALSE(ack().appLimited) << "it left before";
  send();
  now += kRtt;
  EXPECT_TRUE(ack().appLimited);
  EXPECT_TRUE(ack().appLimited) << "it left when the flight of then was not delivered";
  send();
  now += kRtt;
  EXPECT_FALSE(ack().appLimited);
}

TEST_F(DeliveryRateTest, TheLatestPacketOfAnAckMakesTheSample) {
  send();
  now += 1ms;
  send();
  Time last = now;
  now += kRtt;
  AckSample sample;
  rate.onAcked(flight[1], sample, now);
  double byLatest = sample.deliveryRate;
  rate.onAcked(flight[0], sample, now);
  EXPECT_EQ(sample.largestSentAt, last);
  EXPECT_EQ(sample.deliveryRate, byLatest);
  EXPECT_EQ(sample.bytes, 2000u);
}

}  // namespace
}  // namespace braid::delivery_rate_test
