// The path that new data takes, with WiFi (20 ms RTT) and LTE (60 ms RTT).

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/sim/recovery_lab.h"

namespace braid::sim::scheduling_test {
namespace {

const LinkOptions kWifi{.rateBitsPerSecond = 50_Mbit, .delay = 10ms};
const LinkOptions kLte{.rateBitsPerSecond = 30_Mbit, .delay = 30ms};

TunnelOptions scheduled(const char* scheduler) {
  TunnelOptions o;
  o.scheduler = scheduler;
  o.recovery = "none";
  o.outerMtu = o.maxOuterMtu = 1500;
  return o;
}

/// Sends a burst and returns the time until all of it has arrived.
Duration burst(Lab& lab, uint16_t port, uint32_t count) {
  Time begun = lab.s.world.now();
  lab.burst(port, count);
  lab.s.run(500ms);
  Time last{};
  EXPECT_EQ(lab.arrived[port].size(), count);
  for (const auto& [segment, times] : lab.arrived[port]) last = std::max(last, times.front());
  return last - begun;
}

/// True when packets wait at the edge although path b's window has room.
bool isWaiting(Lab& lab) {
  PeerStatus peer = lab.peer();
  auto queues = [](const FlowStatus& f) { return f.queuedBytes > 0; };
  SubflowStatus b = lab.on("b");
  return std::any_of(peer.flows.begin(), peer.flows.end(), queues) && b.inFlight + 1500 < b.window;
}

TEST(Scheduling, TheEndOfAShortBurstWaitsForTheFastPath) {
  // Ten packets leave at once, the last two by the pacer. 12 packets of 1200 bytes take 2.4 ms at
  // 50 Mbit/s.
  Lab lab(scheduled("earliest"), kWifi, kLte);
  EXPECT_LT(burst(lab, 1, 12), 10ms + 4ms) << lab.s.report();
  Lab lowestRtt(scheduled("minrtt"), kWifi, kLte);
  EXPECT_GT(burst(lowestRtt, 1, 12), 30ms);
}

TEST(Scheduling, ALongBurstTakesBothPaths) {
  // 400 packets of 1200 bytes take more than 80 ms on WiFi alone. With LTE, on which the last
  // packet must leave 20 ms before the end, they take at least 55 ms.
  TunnelOptions o = scheduled("earliest");
  o.controller = "bbr";  // after the start of the wan controller the smoothed RTT is 16 ms too high
  Lab lab(o, kWifi, kLte);
  lab.s.upload(8_MB);
  lab.s.run(6s);  // the paths know their rates
  Duration took = burst(lab, 1, 400);
  EXPECT_LT(took, 75ms) << lab.s.report();
  EXPECT_GT(lab.s.sentOn("b"), 50u);
}

TEST(Scheduling, ADownloadTakesBothPaths) {
  Scenario s(1, scheduled("earliest"));
  s.path("wifi", kWifi).path("lte", kLte).start();
  TcpFlow& file = s.download(uint64_t{1} << 40);
  s.run(3s);
  uint64_t before = file.received();
  s.run(10s);
  double mbit = static_cast<double>(file.received() - before) * 8 / 10 / 1e6;
  EXPECT_GT(mbit, 0.85 * 80) << s.report();
}

TEST(Scheduling, ACallBesideADownloadStaysOnTheFastPath) {
  Scenario s(1, scheduled("earliest"));
  s.path("wifi", kWifi).path("lte", kLte).start();
  s.download(uint64_t{1} << 40);
  s.run(5s);
  UdpFlow& call = s.call({.payload = 200, .interval = 20ms, .count = 500}, true);
  s.run(11s);
  EXPECT_EQ(call.received(), 500u);
  EXPECT_LT(call.delay(0.99), 30ms) << "LTE takes longer, whatever waits there; " << s.report();
  EXPECT_EQ(call.reordered(), 0u);
}

TEST(Scheduling, ABurstBesideADownloadFinishesSoonerThanTheSlowPathIs) {
  Lab lab(scheduled("earliest"), kWifi, kLte);
  lab.s.upload(uint64_t{1} << 40);
  lab.s.run(5s);
  for (uint16_t port = 1; port <= 20; ++port) EXPECT_LT(burst(lab, port, 12), 30ms) << port;
}

TEST(Scheduling, NothingSmallGoesAlongOnTheSlowPath) {
  // 300 bytes of room in each datagram of bulk; LTE's carry bulk alone.
  Lab lab(scheduled("earliest"), kWifi, kLte);
  lab.s.upload(uint64_t{1} << 40, {.mss = 1100});
  lab.s.run(5s);
  for (uint16_t port = 1; port <= 100; ++port) {
    Time begun = lab.s.world.now();
    lab.segment(port, 1, 100, true);
    lab.s.run(47ms);
    ASSERT_EQ(lab.arrived[port][1].size(), 1u) << port;
    EXPECT_LT(lab.arrived[port][1].front() - begun, 28ms) << port;
  }
}

TEST(Scheduling, AFlowThatWaitedUnderAnotherSchedulerDoesNotKeepItsWakeUp) {
  // WiFi's window allows about 20 of the 30 segments. The others wait for WiFi; with `earliest` at
  // most until a time less than 50 ms away, half of the other path's RTT. Then WiFi becomes silent.
  // ECF has no such time limit. When the old limit has passed, the edge must not ask to be woken at
  // once again and again.
  TunnelOptions o = scheduled("earliest");
  o.controller = "newreno";
  Lab lab(o, kWifi, {.rateBitsPerSecond = 30_Mbit, .delay = 50ms});
  lab.burst(1, 30);
  lab.s.cut("a").run(3ms);
  ASSERT_TRUE(isWaiting(lab)) << lab.s.report();
  o.scheduler = "ecf";
  lab.s.edge.tunnel().setTunables(o);
  lab.s.run(3s);
  EXPECT_EQ(lab.s.world.failure(), "");
  EXPECT_EQ(lab.arrived[1].size(), 30u);
}

}  // namespace
}  // namespace braid::sim::scheduling_test
