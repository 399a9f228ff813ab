// The decision which datagram flows are kept in order, and its time.

#include "tunnel/queue/flow_kind.h"

#include <gtest/gtest.h>

namespace braid::datagram_order_test {
namespace {

using Sign = DatagramSign;

/// Feeds packets of `size` bytes at `perSecond` for `length`. Returns when the flow became ordered;
/// kNever if it did not.
Time run(DatagramOrder& order, size_t size, double perSecond, Duration length,
         Time from = Time{} + 5s) {
  Duration gap(static_cast<int64_t>(1e9 / perSecond));
  for (Time now = from; now < from + length; now += gap) {
    if (order.onPacket(size, Sign::kNone, now)) return now;
  }
  return kNever;
}

TEST(DatagramOrder, TheFirstPacketThatSaysAnythingDecides) {
  DatagramOrder quic;
  EXPECT_TRUE(quic.onPacket(1200, Sign::kOrdered, Time{}));
  EXPECT_FALSE(quic.onPacket(1200, Sign::kOrdered, Time{})) << "once";
  DatagramOrder esp;
  EXPECT_FALSE(esp.onPacket(300, Sign::kSetup, Time{}));
  EXPECT_FALSE(esp.onPacket(300, Sign::kSetup, Time{}));
  EXPECT_TRUE(esp.onPacket(100, Sign::kOrdered, Time{}));
  DatagramOrder webrtc;
  EXPECT_FALSE(webrtc.onPacket(100, Sign::kNone, Time{})) << "STUN";
  EXPECT_FALSE(webrtc.onPacket(100, Sign::kSetup, Time{}));
  EXPECT_FALSE(webrtc.onPacket(100, Sign::kOrdered, Time{})) << "not at the flow's start";
}

TEST(DatagramOrder, BulkIsOrderedWhateverItIs) {
  DatagramOrder order;
  Time when = run(order, 1400, 1000, 3s);
  EXPECT_GT(when, Time{} + 5s + DatagramOrder::kWindow);
  EXPECT_LT(when, Time{} + 5s + 2 * DatagramOrder::kWindow);
  EXPECT_FALSE(order.onPacket(1400, Sign::kNone, when));
}

TEST(DatagramOrder, CallsGamesAndBurstsAreNot) {
  DatagramOrder voice, video, game, bursts;
  EXPECT_EQ(run(voice, 200, 50, 30s), kNever);
  EXPECT_EQ(run(video, 1200, 4e6 / 8 / 1200, 30s), kNever) << "4 Mbit/s";
  EXPECT_EQ(run(game, 300, 5000, 30s), kNever) << "many, but small";
  for (int n = 0; n < 20; ++n) {
    EXPECT_EQ(run(bursts, 1400, 10000, 50ms, Time{} + 5s + n * 1100ms), kNever)
        << "a burst each second";
  }
}

TEST(DatagramOrder, WhoAsksToBeTimelyStaysSo) {
  DatagramOrder order;
  EXPECT_FALSE(order.onPacket(200, Sign::kTimely, Time{}));
  EXPECT_FALSE(order.onPacket(200, Sign::kOrdered, Time{}));
  EXPECT_EQ(run(order, 1400, 3000, 5s), kNever);
}

}  // namespace
}  // namespace braid::datagram_order_test
