// The windows of NewReno, CUBIC and DCTCP, and ECN between the two ends.

#include <gtest/gtest.h>

#include <cmath>

#include "simnet/tcp/cubic.h"
#include "simnet/tcp/dctcp.h"
#include "simnet/tcp/newreno.h"
#include "tests/unit/simnet/tcp/lab.h"

namespace braid::sim::tcp::congestion_test {
namespace {

constexpr uint64_t kMss = 1448;
const LinkOptions kWire{.delay = 10ms};

TEST(TcpWindow, SlowStartDoublesInARoundTrip) {
  for (bool delayed : {true, false}) {
    Lab lab({.tcp = {.delayedAcks = delayed}, .forth = kWire, .back = kWire});
    lab.net.run(50ms);
    lab.write(10'000'000);
    for (uint64_t window = 10; window <= 80; window *= 2) {
      EXPECT_EQ(lab.client().sender().cwnd(), static_cast<double>(window * kMss));
      lab.net.run(20ms);
    }
  }
}

TEST(TcpWindow, AnAckAddsNoMoreThanTheLimit) {
  Lab lab({.tcp = {.slowStartLimit = 1}, .forth = kWire, .back = kWire});
  lab.net.run(50ms);
  lab.write(10'000'000);
  lab.net.run(20ms);
  EXPECT_EQ(lab.client().sender().cwnd(), 15.0 * kMss) << "five ACKs of two segments each";
}

TEST(TcpWindow, AWindowThatIsNotUsedDoesNotGrow) {
  Lab lab({.forth = kWire, .back = kWire});
  lab.net.run(50ms);
  for (int i = 0; i < 50; ++i) {
    lab.write(2 * kMss);
    lab.net.run(25ms);
  }
  EXPECT_EQ(lab.client().sender().cwnd(), 10.0 * kMss);
}

TEST(TcpWindow, NewRenoGrowsByASegmentInARoundTripAndHalves) {
  NewReno reno(kMss);
  double window = 20 * kMss;
  for (int i = 0; i < 10; ++i) window = reno.grow(window, {.acked = 2 * kMss});
  EXPECT_NEAR(window, 21 * kMss, 0.03 * kMss);
  EXPECT_EQ(reno.afterLoss(window, 16 * kMss, Time{}), 8.0 * kMss) << "of what is in flight";
  EXPECT_EQ(reno.grow(window, {.acked = kMss, .used = false}), window);
}

TEST(TcpWindow, ALossHalvesTheWindowOfARunningFlow) {
  Lab lab({.forth = kWire, .back = kWire});
  lab.net.run(50ms);
  lab.loseData = {100};
  lab.write(10'000'000);
  while (!lab.client().sender().recovering()) lab.net.run(1ms);
  double half = lab.client().sender().ssthresh();
  while (lab.client().sender().recovering()) lab.net.run(1ms);
  EXPECT_NEAR(lab.client().sender().cwnd(), half, 1.0 * kMss);
  lab.net.run(100ms);
  EXPECT_NEAR(lab.client().sender().cwnd(), half + 5 * kMss, 1.0 * kMss)
      << "a segment a round trip";
}

// The behaviour of ns-3 (evaluation/ns3/README.md): the last ACK covers all of the old window,
// which is twice the new one.
TEST(TcpWindow, TheEndOfARecoveryGrowsTheWindowOnlyIfAsked) {
  for (bool grows : {false, true}) {
    Lab lab({.tcp = {.growAfterRecovery = grows}, .forth = kWire, .back = kWire});
    lab.net.run(50ms);
    lab.loseData = {100};
    lab.write(10'000'000);
    while (!lab.client().sender().recovering()) lab.net.run(1ms);
    while (lab.client().sender().recovering()) lab.net.run(1ms);
    double half = lab.client().sender().ssthresh();
    EXPECT_NEAR((lab.client().sender().cwnd() - half) / kMss, grows ? 2 : 0, 0.5);
  }
}

// RFC 9438 sections 4.2 and 4.6: W(t) = C (t - K)^3 + W_max.
TEST(TcpWindow, CubicFollowsItsFormula) {
  constexpr double kBig = 1000;  // segments: far from the Reno-friendly region
  CubicWindow cubic(kMss);
  Time now{1s};
  double window = cubic.afterLoss(kBig * kMss, kBig * kMss, now);
  EXPECT_NEAR(window, 0.7 * kBig * kMss, 1);
  double k = std::cbrt(kBig * 0.3 / 0.4);
  Time epoch = now + 1ms;
  constexpr Duration kRtt = 100ms;
  for (int ms = 1; ms <= 14000; ++ms) {
    now += 1ms;
    window = cubic.grow(window,
                        {.now = now, .acked = static_cast<uint64_t>(window / 100), .srtt = kRtt});
    if (ms % 1000 != 1 || ms == 1) continue;
    double t = toSeconds(now - epoch);
    double wanted = 0.4 * std::pow(t - k, 3) + kBig;
    EXPECT_NEAR(window / kMss, wanted, 0.01 * wanted) << t;
  }
  EXPECT_NEAR(cubic.cubic().k(), k, 0.01);
}

TEST(TcpWindow, CubicConvergesFasterAfterASecondLossBelowTheMaximum) {
  CubicWindow cubic(kMss);
  double window = cubic.afterLoss(100.0 * kMss, 100.0 * kMss, Time{1s});
  EXPECT_EQ(cubic.cubic().wMax(), 100);
  cubic.afterLoss(window, window, Time{2s});
  EXPECT_NEAR(cubic.cubic().wMax(), 70 * 0.85, 0.01) << "RFC 9438 section 4.7";
}

TEST(TcpWindow, CubicIsAsFastAsRenoOnShortPaths) {
  CubicWindow cubic(kMss);
  Time now{1s};
  double window = cubic.afterLoss(20.0 * kMss, 20.0 * kMss, now);
  for (int i = 0; i < 100; ++i) {  // 100 round trips of 1 ms
    now += 1ms;
    window = cubic.grow(window, {.now = now, .acked = static_cast<uint64_t>(window), .srtt = 1ms});
  }
  // W_est grows by 0.53 segments a round trip up to 20 segments, by one from there on
  // (section 4.3).
  double toMaximum = (20 - 14) / (3 * 0.3 / 1.7);
  EXPECT_NEAR(window / kMss, 20 + (100 - toMaximum), 2);
}

TEST(TcpWindow, CubicForgetsItsMaximumAfterATimeout) {
  CubicWindow cubic(kMss);
  EXPECT_NEAR(cubic.afterLoss(100.0 * kMss, 100.0 * kMss, Time{1s}), 70.0 * kMss, 1);
  cubic.onTimeout(Time{1s});
  double window = cubic.grow(70.0 * kMss, {.now = Time{2s}, .acked = kMss, .srtt = 10ms});
  EXPECT_EQ(cubic.cubic().k(), 0);
  EXPECT_EQ(cubic.cubic().wMax(), 70)
      << "the window at the beginning of congestion avoidance (section 4.8)";
  EXPECT_GE(window, 70.0 * kMss);
}

TEST(TcpWindow, CubicLeavesSevenTenths) {
  Lab lab({.tcp = {.control = Control::kCubic, .prr = false}});
  lab.net.run(50ms);
  lab.loseData = {100};
  lab.write(10'000'000);
  double before = 0;
  while (!lab.client().sender().recovering()) {
    before = lab.client().sender().cwnd();
    lab.net.run(10us);
  }
  EXPECT_NEAR(lab.client().sender().ssthresh(), 0.7 * before, 1);
  EXPECT_EQ(lab.client().sender().cwnd(), lab.client().sender().ssthresh());
}

TEST(TcpWindow, DctcpsAlphaIsTheShareOfMarks) {
  DctcpWindow dctcp(kMss);
  EXPECT_EQ(dctcp.alpha(), 1);
  Time now{1s};
  for (int i = 0; i < 200; ++i) {  // a window of ten ACKs, three of them with ECE
    Time sent = now;
    now += 1ms;
    for (int k = 0; k < 10; ++k)
      dctcp.observe({.now = now, .acked = kMss, .echo = k < 3, .sentAt = sent});
  }
  EXPECT_NEAR(dctcp.alpha(), 0.3, 0.05);
  EXPECT_NEAR(dctcp.afterMark(100, now), 100 * (1 - dctcp.alpha() / 2), 1e-9);
  EXPECT_EQ(dctcp.afterLoss(100, 80, now), 40) << "a loss halves (RFC 8257 section 3.5)";
}

// ---- on the wire

Options ecn(Control control = Control::kNewReno) {
  Options o;
  o.control = control;
  o.ecn = true;
  return o;
}

TEST(TcpEcn, IsNegotiatedAndOnlyDataIsCapable) {
  Lab lab({.tcp = ecn()});
  lab.loseData = {2};
  lab.write(20 * kMss);
  lab.net.run(1s);
  EXPECT_EQ(lab.packets[0].tcp.flags, TcpFields::kSyn | TcpFields::kEce | TcpFields::kCwr);
  EXPECT_EQ(lab.packets[1].tcp.flags, TcpFields::kSyn | TcpFields::kAck | TcpFields::kEce);
  std::set<uint64_t> offsets;
  for (const Seen& s : lab.packets) {
    bool fresh = s.fromClient && s.tcp.payloadLength > 0 && offsets.insert(s.offset).second;
    EXPECT_EQ(s.ecn, fresh ? Ecn::kEct0 : Ecn::kNotEct);
  }
}

TEST(TcpEcn, EverywhereMeansEveryPacket) {
  Options o = ecn(Control::kDctcp);
  o.ecnEverywhere = true;
  Lab lab({.tcp = o});
  lab.loseData = {2};
  lab.write(20 * kMss);
  lab.net.run(1s);
  for (const Seen& s : lab.packets) EXPECT_EQ(s.ecn, Ecn::kEct0);
}

TEST(TcpEcn, WithoutBothSidesThereIsNone) {
  WiredPair net({.delay = 10ms}, {.delay = 10ms}, 1);
  Connection c(net, net.left(), net.right(), {1, 2}, ecn(), Options{});
  c.client().send(100000);
  net.run(1s);
  EXPECT_EQ(c.server().received(), 100000u);
  EXPECT_EQ(c.client().stats().marks, 0u);
}

TEST(TcpEcn, AMarkHalvesOnceAWindowAndIsEchoedUntilCwr) {
  for (bool prr : {false, true}) {
    Options o = ecn();
    o.prrAfterMarks = prr;
    Lab lab({.tcp = o, .forth = kWire, .back = kWire});
    lab.net.run(50ms);
    lab.markData = {3};
    lab.write(100 * kMss);
    lab.net.run(25ms);
    EXPECT_EQ(lab.stats().marks, 1u);
    if (!prr) {
      EXPECT_EQ(lab.client().sender().cwnd(), lab.client().sender().ssthresh());
    }
    lab.net.run(1s);
    EXPECT_EQ(lab.stats().marks, 1u) << "all ECEs of one window count once";
    size_t echoes = 0, cwrs = 0;
    for (const Seen& s : lab.acks()) echoes += (s.tcp.flags & TcpFields::kEce) != 0;
    for (const Seen& s : lab.data()) cwrs += (s.tcp.flags & TcpFields::kCwr) != 0;
    EXPECT_GT(echoes, 3u);
    EXPECT_EQ(cwrs, 1u);
    EXPECT_FALSE(lab.acks().back().tcp.flags & TcpFields::kEce);
    EXPECT_EQ(lab.stats().retransmitted, 0u);
  }
}

TEST(TcpEcn, TheWindowComesDownInARoundTripAfterAMark) {
  Lab lab({.tcp = ecn(), .forth = kWire, .back = kWire});
  lab.net.run(50ms);
  lab.markData = {3};
  lab.write(100 * kMss);
  lab.net.run(25ms);
  const Sender& sender = lab.client().sender();
  EXPECT_GT(sender.cwnd(), sender.ssthresh());
  lab.net.run(20ms);
  EXPECT_GE(sender.cwnd(), sender.ssthresh());
  EXPECT_LE(sender.cwnd(), sender.ssthresh() + 2 * kMss) << "and grows again in the next window";
  EXPECT_EQ(lab.stats().marks, 1u);
}

// By PRR the window would be the bytes that this ACK delivered plus one segment. That is less than
// two segments, so the next segment would wait alone for its delayed ACK.
TEST(TcpEcn, TheMarkOfTheLastAckLeavesTheWholeReducedWindow) {
  for (Control control : {Control::kNewReno, Control::kDctcp}) {
    Lab lab({.tcp = ecn(control), .forth = kWire, .back = kWire});
    lab.net.run(50ms);
    lab.markData = {2};
    lab.write(kMss + 100);
    lab.net.run(100ms);
    const Sender& sender = lab.client().sender();
    ASSERT_EQ(lab.stats().marks, 1u);
    EXPECT_EQ(sender.cwnd(), sender.ssthresh());
    EXPECT_GE(sender.cwnd(), 2 * kMss);
  }
}

// Found by a comparison with ns-3: when the window was halved at once, the ACKs that still arrived
// allowed no new data. So no SACK revealed the other losses, and the sender needed a timeout.
TEST(TcpEcn, AfterAMarkWhatArrivesStillClocksNewDataOut) {
  for (Control control : {Control::kNewReno, Control::kCubic, Control::kDctcp}) {
    Options o = ecn(control);
    o.rack = o.tlp = false;
    Lab lab({.tcp = o, .forth = kWire, .back = kWire});
    lab.net.run(50ms);
    lab.markData = {1};
    lab.loseData = {6, 7, 8, 9, 10};
    lab.write(60 * kMss);
    lab.net.run(2s);
    EXPECT_EQ(lab.server().received(), 60 * kMss);
    EXPECT_EQ(lab.stats().timeouts, 0u) << static_cast<int>(control);
    EXPECT_EQ(lab.stats().marks, 1u);
  }
}

TEST(TcpEcn, ALossBehindAMarkHalvesDctcpsWindowOnceMoreUnlessTheMarkAnswersIt) {
  double left[2];
  for (bool answers : {false, true}) {
    Options o = ecn(Control::kDctcp);
    o.rack = o.tlp = false;
    o.markAnswersLoss = answers;
    o.initialWindow = 40;
    Lab lab({.tcp = o, .forth = kWire, .back = kWire});
    lab.net.run(50ms);
    lab.markData = {1};
    lab.loseData = {2};
    lab.write(200 * kMss);
    lab.net.run(25ms);
    left[answers] = lab.client().sender().ssthresh();
  }
  EXPECT_EQ(left[true], 20.0 * kMss);
  EXPECT_LT(left[false], left[true]);
}

TEST(TcpEcn, DctcpsReceiverTellsExactlyHowMuchWasMarked) {
  Lab lab({.tcp = ecn(Control::kDctcp), .forth = kWire, .back = kWire});
  lab.net.run(50ms);
  // When the mark changes between the two segments of a delayed ACK, the first one is acknowledged
  // at once.
  lab.markData = {4, 5, 6};
  lab.write(10 * kMss);
  lab.net.run(100ms);
  uint64_t marked = 0, all = 0, before = 0;
  for (const Seen& s : lab.acks()) {
    uint64_t upTo = s.tcp.ack - lab.acks()[0].tcp.ack;
    if (s.tcp.flags & TcpFields::kEce) marked += upTo - before;
    all = before = upTo;
  }
  EXPECT_EQ(marked, 3 * kMss);
  EXPECT_EQ(all + 2 * kMss, 10 * kMss) << "the first ACK is of two";
}

TEST(TcpEcn, DctcpKeepsAShortQueueAndTheLinkFull) {
  LinkOptions forth{.rateBitsPerSecond = 100e6,
                    .delay = 500us,
                    .queueBytes = 300'000,
                    .ecnThresholdBytes = 20 * 1500};
  Options tcp = ecn(Control::kDctcp);
  tcp.content = false;
  Lab lab({.tcp = tcp, .forth = forth, .back = {.delay = 500us}});
  lab.write(1 << 30);
  lab.net.run(200ms);
  uint64_t before = lab.server().received();
  uint64_t most = 0, least = UINT64_MAX;
  for (int i = 0; i < 500; ++i) {
    lab.net.run(500us);
    size_t queue = lab.net.left().stats().queueBytes;
    most = std::max<uint64_t>(most, queue), least = std::min<uint64_t>(least, queue);
  }
  double mbps = static_cast<double>(lab.server().received() - before) * 8e-6 / 0.25;
  EXPECT_GT(mbps, 95 * 1448.0 / 1500);
  EXPECT_LT(most, 35u * 1500);
  EXPECT_GT(least, 2u * 1500);
  const auto& dctcp = dynamic_cast<const DctcpWindow&>(lab.client().sender().congestion());
  EXPECT_GT(dctcp.alpha(), 0.05);
  EXPECT_LT(dctcp.alpha(), 0.7);
  EXPECT_EQ(lab.stats().retransmitted, 0u);
}

TEST(TcpFairness, TwoFlowsShareABottleneck) {
  for (Control control : {Control::kNewReno, Control::kCubic, Control::kDctcp}) {
    Options tcp = ecn(control);
    tcp.ecn = control == Control::kDctcp;
    tcp.content = false;
    LinkOptions forth{.rateBitsPerSecond = 10e6, .delay = 10ms, .queueBytes = 30'000};
    if (tcp.ecn) forth.ecnThresholdBytes = 12'000;
    WiredPair net(forth, {.delay = 5ms}, 1);
    Connection a(net, net.left(), net.right(), {1, 1}, tcp);
    net.run(300ms);
    Connection b(net, net.left(), net.right(), {2, 2}, tcp);
    for (Connection* c : {&a, &b}) c->client().send(uint64_t{1} << 40);
    net.run(3s);
    uint64_t fromA = a.server().received(), fromB = b.server().received();
    net.run(8s);
    auto shareA = static_cast<double>(a.server().received() - fromA);
    auto shareB = static_cast<double>(b.server().received() - fromB);
    EXPECT_GT(shareA + shareB, 0.9 * 10e6 / 8 * 8);
    EXPECT_LT(std::max(shareA, shareB) / std::min(shareA, shareB), 1.5)
        << static_cast<int>(control);
  }
}

}  // namespace
}  // namespace braid::sim::tcp::congestion_test
