// Bad links, and the packets that must reach the hosts nevertheless.

#include <gtest/gtest.h>

#include "tests/sim/scenario.h"

namespace braid::sim::links_test {
namespace {

LinkOptions lossy(LinkOptions o, double loss) {
  o.loss = loss;
  return o;
}

class Loss : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Percent, Loss, testing::Values(0, 1, 5, 30));

TEST_P(Loss, TcpGetsEverythingInOrder) {
  double loss = GetParam() / 100.0;
  Scenario s(1);
  s.path("dsl", lossy(kDsl, loss)).path("lte", lossy(kLte, loss)).start(15s);
  TcpFlow& file = s.download(300_KB, {.window = 6000});
  ASSERT_TRUE(s.finish(file, 60s));
  // Up to 5 % loss the tunnel repairs all losses, so the inner sender does not notice them.
  if (loss <= 0.05) {
    EXPECT_LE(file.gaps(), 3u) << file.describe() << s.report();
  }
}

TEST_P(Loss, UdpIsTimelyAndComesOnce) {
  double loss = GetParam() / 100.0;
  Scenario s(2);
  s.path("dsl", lossy(kDsl, loss)).path("lte", lossy(kLte, loss)).start(15s);
  UdpFlow& call = s.call({.count = 1000});
  s.run(25s);
  EXPECT_EQ(call.duplicates() + call.wrong(), 0u);
  EXPECT_GE(static_cast<double>(call.received()), 1000 * (1 - loss) * 0.93) << s.report();
  // No datagram is later than one that was lost and reinjected once on the slower path.
  EXPECT_LE(call.worstDelay(), 350ms);
}

TEST(Links, ReorderingIsLearntAndHidden) {
  Scenario s(3);
  LinkOptions o = kDsl;
  o.reorder = 0.05;
  o.reorderDelay = 6ms;
  s.path("dsl", o).start();
  TcpFlow& file = s.download(2_MB, {.window = 16 << 10});
  ASSERT_TRUE(s.finish(file, 30s));
  EXPECT_EQ(file.gaps(), 0u) << file.describe();
  EXPECT_GT(s.subflow(s.hub, "dsl")->spuriousLosses, 0u);
}

TEST(Links, DuplicatesAreReplaysAndGoNowhere) {
  Scenario s(4);
  LinkOptions o = kDsl;
  o.duplicate = 0.1;
  s.path("dsl", o).start();
  TcpFlow& file = s.download(2_MB);
  UdpFlow& call = s.call({.count = 100});
  ASSERT_TRUE(s.finish(file, 10s));
  s.run(3s);
  EXPECT_EQ(file.repeats(), 0u);
  EXPECT_EQ(call.duplicates(), 0u);
  EXPECT_GT(s.edge.drops(Drop::kReplay), 50u);
}

TEST(Links, CorruptionIsCountedAndNeverDelivered) {
  Scenario s(5);
  LinkOptions o = kDsl;
  o.corrupt = 0.05;
  s.path("dsl", o).start();
  TcpFlow& file = s.download(2_MB);
  UdpFlow& call = s.call({.count = 200});
  ASSERT_TRUE(s.finish(file, 30s));
  s.run(5s);
  EXPECT_EQ(call.wrong(), 0u);
  EXPECT_GT(s.edge.drops(Drop::kBadSeal), 20u);
  EXPECT_EQ(s.edge.drops(Drop::kBadFrame) + s.hub.drops(Drop::kBadFrame), 0u);
}

// Many flows on a lossy path: a hole in one must not show in another.
TEST(Links, AHoleInOneFlowDelaysNoOther) {
  Scenario s(6);
  s.path("dsl", {.delay = 50ms}).start();
  struct Seen {
    Time sent, arrived;
  };
  std::map<uint16_t, std::vector<Seen>> flows;
  s.hub.tap = [&](ByteView packet) {
    std::optional<InnerPacket> ip = parseInnerPacket(packet);
    if (!ip || !ip->tcp) return false;
    flows[ip->dport].push_back({Time(Duration(load64(&packet[ip->l4Offset + 20]))), s.world.now()});
    return true;
  };
  uint64_t datagrams = 0;
  s.world.onWire = [&](Path& path, bool up, const WireDatagram& d) {
    // loses one datagram, with packets of whichever flow
    bool lose = up && d.bytes.size() > 400 && ++datagrams == 20;
    path.changeUp([&](LinkOptions& o) { o.loss = lose ? 1 : 0; }, s.world.now());
  };
  for (int i = 0; i < 200; ++i) {
    s.world.after(i * 4ms, [&, i] {
      Bytes payload(400);
      store64(payload.data(), static_cast<uint64_t>(s.world.now().time_since_epoch().count()));
      auto port = static_cast<uint16_t>(100 + i % 4);
      IpFields ip{s.edge.host(), s.hub.host(), 6, Ecn::kNotEct, true};
      s.edge.send(tcpPacket(
          ip, {port, port, static_cast<uint32_t>(i), 0, TcpFields::kAck, 100, 0, 0, payload}));
    });
  }
  s.run(3s);
  int delayed = 0;
  for (auto& [port, seen] : flows) {
    EXPECT_EQ(seen.size(), 50u) << s.report();
    Duration worst{};
    for (const Seen& x : seen) worst = std::max(worst, x.arrived - x.sent);
    delayed += worst > 80ms;
  }
  EXPECT_EQ(delayed, 1);
}

TEST(Links, ASparseFlowBesideBulkIsFast) {
  Scenario s(7);
  s.path("dsl", {.rateBitsPerSecond = 10_Mbit, .delay = 10ms, .queueBytes = 20000}).start();
  s.upload(20_MB);
  s.run(2s);
  UdpFlow& call = s.call({.count = 200});
  s.run(4s);
  // The path's delay, a full bottleneck queue of 16 ms, and one or two datagrams before it.
  EXPECT_LE(call.delay(0.95), 45ms) << s.report();
  EXPECT_GE(call.received(), 180u);
}

TEST(Links, QueuesAreBoundedAndMarkEcnCapablePackets) {
  TunnelOptions options;
  options.queueBytes = 300000;
  Scenario s(8, options);
  s.path("dsl", {.rateBitsPerSecond = 5_Mbit, .delay = 10ms, .queueBytes = 30000}).start();
  TcpFlow& file = s.upload(4_MB, {.ecn = true});
  UdpFlow& flood = s.call({.payload = 1000, .interval = 500us, .count = 6000});
  size_t worst = 0;
  for (int i = 0; i < 100; ++i) {
    s.run(50ms);
    size_t queued = 0;
    PeerStatus peer = s.edge.status().peers[0];
    for (const FlowStatus& f : peer.flows) queued += f.queuedBytes;
    worst = std::max(worst, queued);
  }
  EXPECT_LE(worst, options.queueBytes + 2000);
  EXPECT_GT(worst, 10000u);
  EXPECT_GT(file.ceSeen(), 0u) << s.report();
  EXPECT_GT(s.edge.drops(Drop::kAqm) + s.edge.drops(Drop::kQueueFull), 0u);
  EXPECT_EQ(flood.wrong() + flood.duplicates(), 0u);
}

TEST(Links, OuterMarksSlowTheSenderWithoutLoss) {
  Scenario s(9);
  LinkOptions o{.rateBitsPerSecond = 20_Mbit,
                .delay = 10ms,
                .queueBytes = 400000,
                .ecnThresholdBytes = 20000};
  s.path("dsl", o).start();
  TcpFlow& file = s.upload(8_MB);
  ASSERT_TRUE(s.finish(file, 20s));
  const SubflowStatus* subflow = s.subflow(s.edge, "dsl");
  EXPECT_GT(subflow->ceMarks, 0u);
  EXPECT_LE(subflow->lostPackets, 5u) << s.report();
}

TEST(Links, RekeyUnderTrafficLosesNothing) {
  TunnelOptions options;
  options.rekeyPackets = 300;
  Scenario s(10, options);
  s.path("dsl", kDsl).start();
  TcpFlow& file = s.download(30_MB, {.window = 64 << 10});
  ASSERT_TRUE(s.finish(file, 60s));
  EXPECT_EQ(file.gaps() + file.retransmits(), 0u) << file.describe();
  EXPECT_GE(s.hub.status().peers[0].keyEpoch, 3u);
  EXPECT_EQ(s.hub.status().peers[0].keyEpoch, s.edge.status().peers[0].keyEpoch);
  EXPECT_EQ(s.hub.drops(Drop::kBadSeal) + s.edge.drops(Drop::kBadSeal), 0u);
}

// Found by code review: a session that only sends ACKs gets none itself, and must not run out of
// packet numbers.
TEST(Links, AOneWayStreamGoesOnForEver) {
  Scenario s(11);
  s.path("dsl", {.rateBitsPerSecond = 100_Mbit, .delay = 2ms}).start();
  UdpFlow& stream = s.call({.payload = 100, .interval = 100us, .count = 160000});
  s.run(17s);
  EXPECT_GE(stream.received(), stream.sent() * 99 / 100) << s.report();
}

TEST(Links, AcksOfAOneWayStreamAreFew) {
  Scenario s(12);
  s.path("dsl", kDsl).start();
  s.call({.payload = 1000, .interval = 1ms, .count = 3000});
  s.run(200ms);
  uint64_t before = s.hub.sentDatagrams;
  s.run(2s);
  EXPECT_LE(s.hub.sentDatagrams - before, 2000u / 4 + 60);
  EXPECT_GE(s.hub.sentDatagrams - before, 300u);
}

TEST(Links, TheSenderStaysWithinItsWindow) {
  TunnelOptions o;
  // the window of wan falls and rises within the millisecond between two samples
  o.controller = "bbr";
  Scenario s(13, o);
  s.path("dsl", lossy(kDsl, 0.01)).path("lte", lossy(kLte, 0.01)).start();
  s.upload(20_MB);
  std::map<unsigned, std::pair<uint64_t, uint64_t>> last;
  for (int i = 0; i < 2000; ++i) {
    s.run(1ms);
    PeerStatus peer = s.edge.status().peers[0];
    for (const SubflowStatus& f : peer.subflows) {
      // A window may shrink below what is in flight; what is in flight must not grow then.
      auto& [inFlight, window] = last[f.id];
      if (i > 0 && f.inFlight > f.window + 1600) {
        EXPECT_LE(f.inFlight, std::max(inFlight, window) + 3000) << i;
      }
      inFlight = f.inFlight;
      window = f.window;
    }
  }
}

}  // namespace
}  // namespace braid::sim::links_test
