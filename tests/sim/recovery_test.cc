// The datagrams that each recovery policy sends, and the time that it saves.

#include <gtest/gtest.h>

#include "tests/sim/recovery_lab.h"
#include "tunnel/queue/trace.h"

namespace braid::sim::recovery_test {
namespace {

// ---- on the wire, without a loss

TEST(Recovery, NoneSendsNothingTwice) {
  Lab lab(with("none"));
  lab.burst(1, 10);
  lab.s.run(1s);
  EXPECT_EQ(lab.copies() + lab.parities(), 0u);
  EXPECT_EQ(lab.duplicates(), 0u);
}

TEST(Recovery, FusoCopiesEachPacketOnce) {
  Lab lab(with("fuso"));
  lab.burst(1, 10);
  lab.s.run(1s);
  EXPECT_EQ(lab.copies(), 10u);
  EXPECT_EQ(lab.parities(), 0u);
  EXPECT_EQ(lab.duplicates(), 10u);
  EXPECT_EQ(lab.on("a").protectedPackets, 10u);
  EXPECT_EQ(lab.on("a").useless, 10u);
  EXPECT_EQ(lab.on("a").recovered, 0u);
}

TEST(Recovery, CofusoSendsAParityAndThenCopies) {
  Lab lab(with("cofuso"));
  lab.burst(1, 10);
  lab.s.run(1s);
  EXPECT_EQ(lab.parities(), 1u);
  EXPECT_EQ(lab.copies(), 10u);
  EXPECT_EQ(lab.peer().blocks - lab.before.blocks, 1u);
  EXPECT_EQ(lab.on("a").protectedPackets, 10u) << "a packet in a block and copied counts once";
  EXPECT_EQ(lab.s.hub.status().peers[0].paritiesReceived,
            lab.on("a").parities + lab.on("b").parities + lab.before.subflows[0].parities +
                lab.before.subflows[1].parities);
}

TEST(Recovery, RedundantSendsEachPacketOnBothPaths) {
  Lab lab(with("redundant"));
  lab.burst(1, 10);
  lab.s.run(1s);
  EXPECT_EQ(lab.on("b").copies, 10u);
  EXPECT_EQ(lab.on("a").copies, 0u);
  EXPECT_EQ(lab.duplicates(), 10u);
}

TEST(Recovery, ProactiveSendsEachPacketTwiceOnItsPath) {
  Lab lab(with("proactive"));
  lab.burst(1, 10);
  lab.s.run(1s);
  EXPECT_EQ(lab.on("a").copies, 10u);
  EXPECT_EQ(lab.on("b").copies, 0u);
  EXPECT_EQ(lab.duplicates(), 10u);
}

TEST(Recovery, ReactiveSendsNothingWhileAcksCome) {
  Lab lab(with("reactive"));
  lab.burst(1, 10);
  lab.s.run(1s);
  EXPECT_EQ(lab.copies() + lab.parities(), 0u);
}

TEST(Recovery, CorrectiveSendsOneParityForABin) {
  Lab lab(with("corrective"));
  lab.burst(1, 10);
  lab.s.run(1s);
  EXPECT_EQ(lab.on("a").parities, 1u) << "on the path of the packets";
  EXPECT_EQ(lab.copies() + lab.on("b").parities, 0u);
}

TEST(Recovery, AdaptiveSendsParitiesOnly) {
  Lab lab(with("adaptive"));
  lab.burst(1, 10);
  lab.s.run(1s);
  EXPECT_GE(lab.parities(), 1u);
  EXPECT_LE(lab.parities(), 5u);
  EXPECT_EQ(lab.copies(), 0u);
  EXPECT_EQ(lab.peer().blocks - lab.before.blocks, 1u);
}

TEST(Recovery, AdaptiveCopiesALonePacket) {
  Lab lab(with("adaptive"));
  lab.burst(1, 1);
  lab.s.run(1s);
  EXPECT_EQ(lab.copies(), 1u);
  EXPECT_EQ(lab.parities(), 0u);
}

TEST(Recovery, AdaptiveWaitsForTheEndOfABurst) {
  Lab lab(with("adaptive"));
  for (uint32_t i = 1; i <= 20; ++i)
    lab.s.world.after(i * 2ms, [&lab, i] { lab.segment(1, i, 1200, false); });
  lab.s.run(40ms);
  EXPECT_EQ(lab.copies() + lab.parities(), 0u) << "a pause is an eighth of the RTT: 5 ms";
  lab.s.run(10ms);
  EXPECT_GE(lab.parities(), 1u);
}

// ---- what is lost at the end

class Tail : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Policy, Tail, testing::ValuesIn(kPolicies),
                         [](const auto& i) { return std::string(i.param); });

TEST_P(Tail, ALostLastPacket) {
  std::string policy = GetParam();
  Lab lab(with(policy));
  lab.lost = {{"a", 10}};
  if (policy == "proactive") lab.lost = {{"a", 19}};  // its first sending
  lab.burst(1, 10);
  Duration time = lab.completion(1, 10);
  Duration least = 20ms;
  Duration most = 25ms;                                   // as without a loss
  if (policy == "corrective") least = 40ms, most = 50ms;  // the bin and the wait, RTT/4 each
  if (policy == "reactive" || policy == "none") least = 60ms, most = 130ms;  // a PTO or two RTTs
  EXPECT_GE(time, least) << lab.s.report();
  EXPECT_LE(time, most) << lab.s.report();
  lab.s.run(1s);
  EXPECT_EQ(lab.arrived[1].size(), 10u);
  for (auto& [segment, times] : lab.arrived[1]) EXPECT_EQ(times.size(), 1u) << segment;
  EXPECT_EQ(lab.on("a").lostPackets, 1u) << "the loss counts, whoever mends it";
}

// The one-way delay is 20 ms, the RTT 40 ms. fuso, cofuso and redundant send copies with the burst
// or directly behind it. Some recovery packets of proactive and adaptive arrive; these are too few
// to repair ten losses, but their ACKs reveal the loss. The packets of corrective reveal it, too,
// after its bin and its wait of RTT/4 each. The other policies wait for a PTO.
TEST_P(Tail, TheWholeBurstIsLost) {
  std::string policy = GetParam();
  Lab lab(with(policy));
  for (uint64_t i = 1; i <= 10; ++i) lab.lost.insert({"a", i});
  lab.burst(1, 10);
  Duration most = 25ms;
  if (policy == "proactive" || policy == "adaptive") most = 75ms;
  if (policy == "corrective") most = 95ms;
  if (policy == "reactive" || policy == "none") most = 130ms;
  EXPECT_LE(lab.completion(1, 10), most) << lab.s.report();
}

// ---- what the receiver says

// In a data centre a timeout of 15 ms, which would not matter on the Internet, dominates the tail
// of the flow times.
TEST(Recovery, OnAFabricALostTailComesAgainWithinMilliseconds) {
  LinkOptions rack{.rateBitsPerSecond = 1000_Mbit, .delay = 100us};
  LinkOptions other = rack;
  other.delay = 200us;  // the second choice
  Lab lab(with("none"), rack, other);
  lab.lost = {{"a", 10}};
  lab.burst(1, 10);
  EXPECT_LE(lab.completion(1, 10), 4ms) << lab.s.report();
  lab.s.run(100ms);
  EXPECT_EQ(lab.on("a").lostPackets, 1u);
  EXPECT_GE(lab.repaired(), 1u);
}

// A gateway that gets no CPU for 10 ms answers nothing in that time.
TEST(Recovery, OnAFabricAGatewayThatStallsLosesNoPath) {
  LinkOptions rack{.rateBitsPerSecond = 1000_Mbit, .delay = 100us};
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    Lab lab(with("none"), rack, rack, seed);
    for (uint16_t port = 100; port < 140; ++port) {  // each path learns that its RTT is steady
      lab.burst(port, 10);
      lab.s.run(1ms);
    }
    lab.mark();
    for (const char* path : {"a", "b"}) {
      lab.s.world.path(path).changeUp([](LinkOptions& l) { l.delay = 15ms; }, lab.s.world.now());
    }
    lab.burst(1, 10);
    EXPECT_LE(lab.completion(1, 10), 16ms);
    EXPECT_GE(lab.on("a").timeouts + lab.on("b").timeouts, 1u)
        << "the silence was long enough for a PTO";
    for (const char* path : {"a", "b"}) EXPECT_EQ(lab.on(path).state, "active") << seed;
  }
}

TEST(Recovery, WhatIsDecodedIsNotSentAgain) {
  for (const char* policy : {"cofuso", "adaptive"}) {
    Lab lab(with(policy));
    lab.lost = {{"a", 3}};
    lab.burst(1, 10);
    EXPECT_LE(lab.completion(1, 10), 25ms) << policy;
    lab.s.run(1s);
    EXPECT_EQ(lab.repaired(), 0u) << policy << lab.s.report();
    EXPECT_EQ(lab.on("a").decoded, 1u) << policy;
    EXPECT_EQ(lab.on("a").recovered, 1u) << policy;
    EXPECT_EQ(lab.on("a").lostPackets, 1u) << policy;
    EXPECT_EQ(lab.on("a").timeouts, 0u) << policy;
    EXPECT_EQ(lab.s.hub.status().peers[0].restored, 1u) << policy;
  }
}

TEST(Recovery, WhatACopyDeliveredIsNotSentAgain) {
  Lab lab(with("fuso"));
  lab.lost = {{"a", 3}};
  lab.burst(1, 10);
  lab.s.run(1s);
  EXPECT_EQ(lab.repaired(), 0u);
  EXPECT_EQ(lab.on("a").decoded, 0u);
  EXPECT_EQ(lab.on("a").useless, 9u);
  EXPECT_EQ(lab.on("a").lostPackets, 1u);
}

TEST(Recovery, AReceiverThatDecodesNothingIsNoHarm) {
  TunnelOptions o = with("adaptive");
  o.decodeBuffer = 0;
  Lab lab(o);
  lab.lost = {{"a", 3}};
  lab.burst(1, 10);
  EXPECT_LE(lab.completion(1, 10), 120ms);
  EXPECT_EQ(lab.s.hub.status().peers[0].restored, 0u);
  EXPECT_EQ(lab.on("a").parities + lab.on("b").parities, 0u) << "it has said so";
  EXPECT_GE(lab.repaired() + lab.on("a").copies + lab.on("b").copies, 1u);
}

// ---- blocks

TEST(Recovery, AParityLargerThanADatagramComesInTwo) {
  for (const char* policy : {"cofuso", "adaptive"}) {
    Lab lab(with(policy));
    size_t full = lab.peer().innerMtu - ip::kV4Header - ip::kTcpHeader;
    lab.lost = {{"a", 3}};
    lab.burst(1, 10, full);
    lab.s.run(1s);
    EXPECT_EQ(lab.s.hub.status().peers[0].restored, 1u) << policy << lab.s.report();
    EXPECT_EQ(lab.repaired(), 0u) << policy;
    EXPECT_EQ(lab.arrived[1].size(), 10u) << policy;
  }
}

TEST(Recovery, ASymbolOfSeveralPacketsOnAPathOfASmallerMtu) {
  TunnelOptions o = with("adaptive");
  o.outerMtu = 0;
  LinkOptions narrow = kSlow;
  narrow.mtu = 1300;
  narrow.delay = 5ms;  // so that parities take this path
  LinkOptions wide = kFast;
  Lab lab(o, wide, narrow);
  lab.s.run(5s);  // both MTUs are found
  ASSERT_LE(lab.on("b").mtu, 1300u);
  ASSERT_GE(lab.on("a").mtu, 1490u);
  // New data would take b as well, so it is full.
  lab.s.change("b", [](LinkOptions& x) { x.delay = 25ms; });
  lab.burst(2, 20, 600);
  lab.s.run(2s);
  lab.mark();
  lab.lost = {{"a", 3}};
  lab.burst(1, 20, 650);
  lab.s.run(1s);
  EXPECT_EQ(lab.arrived[1].size(), 20u) << lab.s.report();
  EXPECT_GE(lab.parities(), 1u);
}

TEST(Recovery, ABlockSpansSubflows) {
  TunnelOptions o = with("adaptive");
  o.initialWindow = 10;
  Lab lab(o);
  lab.lost = {{"b", 2}};
  lab.burst(1, 14);
  lab.s.run(1s);
  EXPECT_EQ(lab.arrived[1].size(), 14u);
  EXPECT_GT(lab.on("a").protectedPackets, 0u) << lab.s.report();
  EXPECT_GT(lab.on("b").protectedPackets, 0u) << lab.s.report();
  EXPECT_EQ(lab.on("b").decoded, 1u);
  EXPECT_EQ(lab.repaired(), 0u);
}

TEST(Recovery, SeveralParitiesMendABurstOfLosses) {
  Lab lab(with("adaptive"));
  lab.lost = {{"a", 5}, {"a", 6}};
  lab.burst(1, 20);
  lab.s.run(1s);
  ASSERT_GE(lab.parities(), 2u);
  EXPECT_EQ(lab.on("a").decoded, 2u) << lab.s.report();
  EXPECT_EQ(lab.repaired(), 0u);
  EXPECT_EQ(lab.on("a").lostPackets, 2u);
  // The path is known to lose in bursts now.
  lab.mark();
  lab.lost = {{"a", 9}, {"a", 10}, {"a", 11}};
  lab.burst(2, 20);
  lab.s.run(1s);
  ASSERT_GE(lab.parities(), 3u);
  EXPECT_EQ(lab.on("a").decoded, 3u) << lab.s.report();
}

TEST(Recovery, KMaxBoundsABlock) {
  TunnelOptions o = with("cofuso");
  o.recoveryOptions.kMax = 4;
  Lab lab(o);
  lab.burst(1, 12);
  lab.s.run(1s);
  EXPECT_EQ(lab.peer().blocks - lab.before.blocks, 3u);
  EXPECT_EQ(lab.parities(), 3u);
}

TEST(Recovery, ParitiesStopWhenTheBlockIsAcknowledged) {
  TunnelOptions o = with("adaptive");
  o.recoveryOptions.kMax = 128;
  Lab lab(o);
  lab.burst(1, 5);
  lab.s.run(60ms);
  uint64_t sent = lab.parities();
  lab.s.run(5s);
  EXPECT_EQ(lab.parities(), sent);
}

// ---- what is traced

struct Sink final : TraceSink {
  std::vector<TraceEvent> events;
  void onTrace(const TraceEvent& event) override { events.push_back(event); }
  void onStream(const StreamTrace&) override {}
  std::vector<TraceEvent> of(TraceEvent::Kind kind) const {
    std::vector<TraceEvent> some;
    std::ranges::copy_if(events, std::back_inserter(some),
                         [&](const auto& e) { return e.kind == kind; });
    return some;
  }
};

TEST(Recovery, TheTraceTellsTheStoryOfALoss) {
  using Kind = TraceEvent::Kind;
  Sink sink;
  TunnelOptions o = with("adaptive");
  Lab lab(o);
  for (Node* node : {&lab.s.edge, &lab.s.hub}) node->tunnel().setTrace(&sink);
  lab.lost = {{"a", 3}};
  lab.burst(1, 10);
  lab.s.run(1s);
  ASSERT_EQ(sink.of(Kind::kBlockStarted).size(), 1u);
  TraceEvent started = sink.of(Kind::kBlockStarted)[0];
  EXPECT_EQ(started.k, 10);
  EXPECT_EQ(started.lossRate, 0) << "nothing was lost before";
  for (Kind kind : {Kind::kBlockDecoded, Kind::kPacketRecovered, Kind::kPacketLost}) {
    ASSERT_EQ(sink.of(kind).size(), 1u) << traceName(kind);
    TraceEvent e = sink.of(kind)[0];
    EXPECT_EQ(e.session, started.session) << traceName(kind);
    EXPECT_EQ(e.subflow, started.subflow) << traceName(kind);
    EXPECT_EQ(e.pn, sink.of(Kind::kPacketLost)[0].pn) << traceName(kind);
  }
  EXPECT_NE(started.session, 0u);
  EXPECT_EQ(sink.of(Kind::kBlockDecoded)[0].block, started.block);
  EXPECT_GT(sink.of(Kind::kPacketLost)[0].lossRate, 0);
  sink.events.clear();
  lab.burst(2, 10);
  lab.s.run(1s);
  ASSERT_EQ(sink.of(Kind::kBlockStarted).size(), 1u);
  EXPECT_GT(sink.of(Kind::kBlockStarted)[0].lossRate, 0);
  EXPECT_LT(sink.of(Kind::kBlockStarted)[0].lossRate, 0.5);
}

TEST(Recovery, EachCopyOfADuplicatingPolicyIsTraced) {
  for (const char* policy : {"redundant", "proactive"}) {
    Sink sink;
    TunnelOptions o = with(policy);
    Lab lab(o);
    for (Node* node : {&lab.s.edge, &lab.s.hub}) node->tunnel().setTrace(&sink);
    lab.burst(1, 10);
    lab.s.run(1s);
    EXPECT_EQ(lab.copies(), 10u);
    EXPECT_EQ(sink.of(TraceEvent::Kind::kCopySent).size(), 10u) << policy;
  }
}

// ---- which path repairs take

TEST(Recovery, NoneRepairsOnItsOwnPath) {
  Lab lab(with("none"));
  lab.lost = {{"a", 3}};
  lab.burst(1, 10);
  lab.s.run(1s);
  EXPECT_EQ(lab.arrived[1].size(), 10u);
  EXPECT_GT(lab.on("a").retransmittedBytes, 0u);
  EXPECT_EQ(lab.on("b").retransmittedBytes, 0u);
}

// The packet's own path carries data all the time, but no packet of that size any more.
TEST(Recovery, NoneRepairsElsewhereWhatItsOwnPathNoLongerCarries) {
  TunnelOptions o = with("none");
  o.outerMtu = 0;  // it is searched for
  Lab lab(o);
  lab.lost = {{"a", 3}};
  lab.burst(1, 10);
  lab.s.run(5ms);
  lab.s.world.path("a").uplinkMtu = 1250;
  lab.s.run(1s);
  EXPECT_EQ(lab.arrived[1].size(), 10u) << lab.s.report();
  EXPECT_GT(lab.on("b").retransmittedBytes, 0u);
}

TEST(Recovery, NoneMovesTheDataOfADeadPath) {
  Lab lab(with("none"));
  lab.s.world.onWire = nullptr;
  lab.s.cut("a");
  lab.burst(1, 10);
  EXPECT_LE(lab.completion(1, 10), 400ms) << lab.s.report();
  EXPECT_GT(lab.on("b").retransmittedBytes, 0u);
}

// In each run a different protection datagram is lost, so that a repair is needed at least once.
TEST(Recovery, AdaptiveRepairsOnThePathThatLosesLess) {
  TunnelOptions o = with("adaptive");
  o.decodeBuffer = 0;  // without a decoding buffer the peer gets copies
  size_t needed = 0;
  for (uint64_t copy = 1; copy <= 10; ++copy) {
    Lab lab(o);
    for (uint64_t i = 2; i <= 30; i += 2) lab.lost.insert({"a", i});
    lab.burst(1, 40);
    lab.s.run(2s);
    EXPECT_EQ(lab.arrived[1].size(), 40u);
    lab.lost.clear();
    lab.mark();
    lab.lost = {{"a", 3}, {"b", copy}};
    lab.burst(2, 10);
    lab.s.run(1s);
    EXPECT_EQ(lab.arrived[2].size(), 10u);
    EXPECT_EQ(lab.on("a").retransmittedBytes, 0u) << copy << lab.s.report();
    needed += lab.on("b").retransmittedBytes > 0;
  }
  EXPECT_GT(needed, 0u);
}

}  // namespace
}  // namespace braid::sim::recovery_test
