// Datagram flows that must be kept in order, through two gateways over WiFi (20 ms RTT, 1 % loss)
// and LTE (60 ms RTT, 0.1 % loss).

#include <gtest/gtest.h>

#include "tests/sim/scenario.h"

namespace braid::sim::order_test {
namespace {

const LinkOptions kWifi{.rateBitsPerSecond = 50_Mbit, .delay = 10ms, .loss = 0.01};
const LinkOptions kLte{.rateBitsPerSecond = 30_Mbit, .delay = 30ms, .loss = 0.001};

struct Seen {
  uint64_t sent, received, reordered;
};

/// Measures a stream of full datagrams at 64 Mbit/s, which needs both paths, from its third to its
/// fourth second.
Seen stream(uint8_t dscp) {
  Scenario s(1);
  s.path("wifi", kWifi).path("lte", kLte).start();
  UdpFlow& flow = s.call({.payload = 1200, .interval = 150us, .count = 27'000, .dscp = dscp}, true);
  s.run(2s);
  Seen before{flow.sent(), flow.received(), flow.reordered()};
  s.run(2s);
  Seen after{flow.sent(), flow.received(), flow.reordered()};
  return {after.sent - before.sent, after.received - before.received,
          after.reordered - before.reordered};
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

// A sender that uses ECN (RFC 9000 section 13.4) learns of a full tunnel by marks, as TCP does.
TEST(Order, WhatIsKeptInOrderKeepsItsEcn) {
  auto overload = [](bool ecn) {
    Scenario s(1);
    s.path("wifi", kWifi).path("lte", kLte).start();
    UdpFlow& flow = s.call({.payload = 1200, .interval = 96us, .count = 30'000, .ecn = ecn}, true);
    s.run(2s);  // slow start spreads the arrivals, so order is not checked in this time
    uint64_t start = flow.reordered();
    s.run(3s);
    EXPECT_EQ(flow.wrong(), 0u);
    EXPECT_LT(flow.reordered() - start, flow.received() / 200);
    return flow.ceSeen();
  };
  EXPECT_GT(overload(true), 30u);
  EXPECT_EQ(overload(false), 0u);
}

// ---- a call beside a download

struct Call {
  uint64_t sent;
  uint64_t lost;
  Duration p95, p99;
  uint64_t downloaded;
};

/// The properties of a call, with datagrams of 172 bytes.
struct CallOptions {
  Duration interval = 20ms;
  /// Datagrams sent back to back; the pause after them is this many intervals
  uint64_t together = 1;
  bool isDown = true;    ///< towards the edge, as the download is
  bool isFirst = false;  ///< begins before the download
};

/// Runs a call of half a minute, alone or beside a download that started three seconds earlier.
Call call(uint64_t seed, bool busy, const CallOptions& options = {}) {
  constexpr Duration kStart = 3s, kLength = 30s;
  Scenario s(seed);
  s.path("wifi", kWifi).path("lte", kLte).start();
  UdpOptions datagrams{.payload = 172, .interval = options.interval, .together = options.together};
  Duration length = kLength + (options.isFirst ? kStart : 0s);
  datagrams.count = static_cast<uint64_t>(length / options.interval);
  UdpFlow* flow = options.isFirst ? &s.call(datagrams, options.isDown) : nullptr;
  if (options.isFirst) s.run(1s);
  TcpFlow* file = busy ? &s.download(uint64_t{1} << 40) : nullptr;
  s.run(kStart);
  uint64_t before = file ? file->received() : 0;
  if (!flow) flow = &s.call(datagrams, options.isDown);
  s.run(kLength + 1s);
  return {flow->sent(), flow->sent() - flow->received(), flow->delay(0.95), flow->delay(0.99),
          file ? file->received() - before : 0};
}

// The two paths are always full: a copy that had to wait for an open window would never be sent.
TEST(Order, ACallBesideADownloadIsProtectedAheadOfIt) {
  Duration idle = call(1, false).p99;
  uint64_t downloaded = 0;
  for (uint64_t seed : {1, 2, 3}) {
    Call beside = call(seed, true);
    EXPECT_LE(beside.lost, 2u) << "seed " << seed;
    EXPECT_LE(beside.p99, idle + 16ms) << "seed " << seed;  // measured: 8 to 13 ms
    downloaded += beside.downloaded;
  }
  // One run alone gives between 56 and 68 Mbit/s.
  EXPECT_GT(static_cast<double>(downloaded) * 8 / (3 * 31), 0.72 * 80_Mbit);
}

/// Runs calls in both directions, begun before and after the download. Returns the losses of all of
/// them. `slowest`: the worst p95.
uint64_t lostOfFour(CallOptions options, uint64_t& sent, Duration& slowest) {
  uint64_t lost = 0;
  for (bool isDown : {true, false}) {
    for (bool isFirst : {true, false}) {
      options.isDown = isDown;
      options.isFirst = isFirst;
      Call beside = call(1, true, options);
      sent += beside.sent;
      lost += beside.lost;
      slowest = std::max(slowest, beside.p95);
    }
  }
  return lost;
}

// For calls with any density of datagrams, sent singly or several at once. Without protection 0.6
// to 1 % of them are lost.
TEST(Order, EveryCallBesideADownloadIsProtected) {
  for (CallOptions options : {CallOptions{.interval = 100ms},
                              {.interval = 20ms},
                              {.interval = 20ms, .together = 2},
                              {.interval = 20ms, .together = 5},
                              {.interval = 5ms},
                              {.interval = 5ms, .together = 5}}) {
    uint64_t sent = 0;
    Duration slowest{};
    uint64_t lost = lostOfFour(options, sent, slowest);
    std::string what = std::to_string(options.together) + " every " +
                       std::to_string(toSeconds(options.interval * options.together)) + " s";
    EXPECT_LE(lost, sent / 2000 + 2) << "of " << sent << ", " << what;
    EXPECT_LE(slowest, kWifi.delay + 16ms) << what;
  }
}

}  // namespace
}  // namespace braid::sim::order_test
