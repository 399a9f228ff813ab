// Datagrams that want order, through two gateways: WiFi and LTE, 20 and 60 ms of RTT, 1 and 0.1 % of loss.

#include <gtest/gtest.h>

#include "tests/sim/scenario.h"

namespace braid::sim::order_test {
namespace {

const LinkOptions kWifi{.rateBitsPerSecond = 50_Mbit, .delay = 10ms, .loss = 0.01};
const LinkOptions kLte{.rateBitsPerSecond = 30_Mbit, .delay = 30ms, .loss = 0.001};

struct Seen {
  uint64_t sent, received, reordered;
};

/// A stream of full datagrams at 64 Mbit/s, which needs both paths, from its third second to its fourth.
Seen stream(uint8_t dscp) {
  Scenario s(1);
  s.path("wifi", kWifi).path("lte", kLte).start();
  UdpFlow& flow = s.call({.payload = 1200, .interval = 150us, .count = 27'000, .dscp = dscp}, true);
  s.run(2s);
  Seen before{flow.sent(), flow.received(), flow.reordered()};
  s.run(2s);
  Seen after{flow.sent(), flow.received(), flow.reordered()};
  return {after.sent - before.sent, after.received - before.received, after.reordered - before.reordered};
}

TEST(Order, BulkOfDatagramsArrivesInOrderAndWhole) {
  Seen bulk = stream(0), expedited = stream(46);
  EXPECT_GT(expedited.reordered, expedited.sent / 20) << "EF comes as it comes";
  EXPECT_LT(bulk.reordered, bulk.sent / 1000);
  EXPECT_GT(bulk.received, bulk.sent * 99 / 100);
}

TEST(Order, ACallBesideBulkOfDatagramsDoesNotWaitForItsOrder) {
  Scenario s(1);
  s.path("wifi", kWifi).path("lte", kLte).start();
  s.call({.payload = 1200, .interval = 250us, .count = 40'000}, true);
  s.run(3s);
  UdpFlow& game = s.call({.payload = 100, .interval = 33ms, .count = 150}, true);
  s.run(6s);
  EXPECT_GE(game.received(), 140u);
  EXPECT_LT(game.delay(0.95), 30ms) << s.report();
}

}  // namespace
}  // namespace braid::sim::order_test
