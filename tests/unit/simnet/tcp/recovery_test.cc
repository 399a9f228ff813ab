// How losses are found and repaired: each mechanism on its own, with its timing.

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "inet/ip.h"
#include "tests/unit/simnet/tcp/lab.h"

namespace braid::sim::tcp::recovery_test {
namespace {

constexpr uint64_t kMss = 1448;
/// A link without a rate limit: the round trip is always 20 ms.
const LinkOptions kWire{.delay = 10ms};

/// RFC 6675, the papers' "TCP".
Options counting() {
  Options o;
  o.rack = o.tlp = o.prr = false;
  return o;
}

Lab ready(const Options& tcp, LinkOptions forth = kWire) {
  return Lab({.tcp = tcp, .forth = std::move(forth), .back = kWire});
}

TEST(TcpRecovery, OneLossIsRepairedInARoundTripWithEachDetector) {
  Options rack;
  Options sack = counting(), fack = counting(), reno = counting();
  fack.fack = true;
  reno.sack = false;
  for (const Options& tcp : {rack, sack, fack, reno}) {
    Lab lab = ready(tcp);
    lab.loseData = {3};
    lab.net.run(50ms);
    Time begin = lab.net.now();
    lab.write(10 * kMss);
    lab.net.run(1s);
    ASSERT_EQ(lab.arrived.size(), 1u);
    EXPECT_EQ(lab.arrived[0].end - begin, 30ms) << "there, back and there again";
    EXPECT_EQ(lab.stats().timeouts, 0u);
    EXPECT_EQ(lab.stats().retransmitted, 1u);
    EXPECT_EQ(lab.stats().fastRecoveries, 1u);
  }
}

// The SYN-ACK announced 64 KB of the receiver's 64 MB. If the first ACK announced more, it would
// not be a duplicate, and two others would be too few.
TEST(TcpRecovery, TheFirstSegmentsLossIsFoundByTheThreeAfterIt) {
  Options tcp = counting();
  tcp.sack = tcp.timestamps = tcp.limitedTransmit = tcp.delayedAcks = false;
  Lab lab = ready(tcp);
  lab.loseData = {1};
  lab.write(4 * 1460);
  lab.net.run(150ms);
  EXPECT_EQ(lab.arrived.size(), 1u);
  EXPECT_EQ(lab.stats().fastRecoveries, 1u);
  EXPECT_EQ(lab.stats().timeouts, 0u);
}

// The behaviour of ns-3 (evaluation/ns3/README.md): no segment above the last one can arrive and
// reveal its loss.
TEST(TcpRecovery, APartialAckFindsALostTailOnlyIfAsked) {
  for (bool asked : {false, true}) {
    Options tcp = counting();
    tcp.partialAcks = asked;
    Lab lab = ready(tcp);
    lab.loseData = {3, 10};
    lab.net.run(50ms);
    Time begin = lab.net.now();
    lab.write(10 * kMss);
    lab.net.run(1s);
    ASSERT_EQ(lab.arrived.size(), 1u);
    EXPECT_EQ(lab.stats().timeouts, asked ? 0u : 1u);
    EXPECT_EQ(lab.stats().retransmitted, 2u);
    if (asked) {
      EXPECT_EQ(lab.arrived[0].end - begin, 50ms)
          << "there and back, and there and back for segment 3, and there";
    }
  }
}

TEST(TcpRecovery, ManyLossesOfAWindowAreRepairedInARoundTripWithSack) {
  for (bool rack : {true, false}) {
    Options tcp = rack ? Options{} : counting();
    tcp.initialWindow = 40;
    Lab lab = ready(tcp);
    lab.loseData = {2, 5, 6, 11, 12, 13, 20};
    lab.net.run(50ms);
    Time begin = lab.net.now();
    lab.write(40 * kMss);
    lab.net.run(1s);
    ASSERT_EQ(lab.arrived.size(), 1u);
    EXPECT_EQ(lab.arrived[0].end - begin, 30ms);
    EXPECT_EQ(lab.stats().retransmitted, 7u);
    EXPECT_EQ(lab.stats().timeouts, 0u);
  }
}

TEST(TcpRecovery, WithoutSackEachRoundTripRepairsOneLoss) {
  Options tcp = counting();
  tcp.sack = false;
  Lab lab = ready(tcp);
  lab.loseData = {2, 4, 6};
  lab.net.run(50ms);
  Time begin = lab.net.now();
  lab.write(10 * kMss);
  lab.net.run(1s);
  ASSERT_EQ(lab.arrived.size(), 1u);
  EXPECT_EQ(lab.arrived[0].end - begin, 70ms);
  EXPECT_EQ(lab.stats().retransmitted, 3u);
  EXPECT_EQ(lab.stats().fastRecoveries, 1u);
}

TEST(TcpRecovery, ALostTailWaitsForTheLeastTimeout) {
  Options tcp = counting();
  tcp.minRto = 150ms;
  tcp.delayedAcks = false;
  Lab lab = ready(tcp);
  lab.loseData = {9, 10};
  lab.net.run(50ms);
  Time begin = lab.net.now();
  lab.write(10 * kMss);
  lab.net.run(1s);
  ASSERT_EQ(lab.arrived.size(), 1u);
  EXPECT_EQ(lab.stats().timeouts, 1u);
  std::vector<Seen> data = lab.data();
  ASSERT_EQ(data.size(), 12u);
  EXPECT_EQ(data[10].at - begin, 20ms + 150ms) << "from the last ACK of new data on";
  EXPECT_EQ(data[11].at - data[10].at, 20ms) << "a window of one segment";
}

TEST(TcpRecovery, TheTimeoutIsOfRfc6298AndDoubles) {
  Options tcp = counting();
  tcp.minRto = 1ms;
  tcp.delayedAcks = false;
  Lab lab = ready(tcp);
  lab.loseData = {1, 2, 3};
  lab.net.run(50ms);
  // One sample of 20 ms: SRTT 20 ms, RTTVAR 10 ms.
  EXPECT_EQ(lab.client().sender().rto().value(), 60ms);
  lab.write(kMss);
  lab.net.run(2s);
  std::vector<Seen> data = lab.data();
  ASSERT_EQ(data.size(), 4u);
  EXPECT_EQ(data[1].at - data[0].at, 60ms);
  EXPECT_EQ(data[2].at - data[1].at, 120ms);
  EXPECT_EQ(data[3].at - data[2].at, 240ms);
  EXPECT_EQ(lab.stats().timeouts, 3u);
}

TEST(TcpRecovery, LinuxAddsTheLeastTimeoutToTheRoundTrip) {
  Options tcp;
  tcp.minRtoAboveSrtt = true;
  Lab lab = ready(tcp);
  lab.net.run(50ms);
  EXPECT_EQ(lab.client().sender().rto().value(), 220ms);
}

TEST(TcpRecovery, TheTimeoutHasALimit) {
  Options tcp = counting();
  tcp.maxRto = 1s;
  Lab lab = ready(tcp);
  lab.net.run(50ms);
  for (uint64_t i = 1; i < 20; ++i) lab.loseData.insert(i);
  lab.write(kMss);
  lab.net.run(6s);
  std::vector<Seen> data = lab.data();
  ASSERT_GT(data.size(), 6u);
  EXPECT_EQ(data[6].at - data[5].at, 1s);
}

TEST(TcpRecovery, KarnLeavesOutWhatWasSentTwice) {
  for (bool timestamps : {false, true}) {
    Options tcp = counting();
    tcp.timestamps = timestamps;
    tcp.delayedAcks = false;
    Lab lab = ready(tcp);
    lab.loseData = {1};
    lab.net.run(50ms);
    lab.write(100);
    lab.net.run(1s);
    ASSERT_EQ(lab.stats().timeouts, 1u);
    EXPECT_EQ(lab.client().sender().rto().srtt(), 20ms);
    Duration rto = lab.client().sender().rto().value();
    EXPECT_EQ(rto, timestamps ? 200ms : 400ms) << "without a sample the timer stays backed off";
  }
}

TEST(TcpRecovery, AfterATimeoutTheWindowIsOneSegment) {
  Options tcp = counting();
  Lab lab = ready(tcp);
  for (uint64_t i = 1; i <= 10; ++i) lab.loseData.insert(i);
  lab.net.run(50ms);
  lab.write(10 * kMss);
  lab.net.run(205ms);
  EXPECT_EQ(lab.stats().timeouts, 1u);
  EXPECT_EQ(lab.client().sender().cwnd(), 1.0 * kMss);
  EXPECT_EQ(lab.client().sender().ssthresh(), 5.0 * kMss);
  lab.net.run(1s);
  EXPECT_EQ(lab.arrived.size(), 1u);
  EXPECT_EQ(lab.stats().retransmitted, 10u);
}

TEST(TcpRecovery, ASecondTimeoutOfASegmentTakesNoMore) {
  Options tcp = counting();
  Lab lab = ready(tcp);
  for (uint64_t i = 1; i <= 11; ++i) lab.loseData.insert(i);
  lab.net.run(50ms);
  lab.write(10 * kMss);
  lab.net.run(650ms);
  EXPECT_EQ(lab.stats().timeouts, 2u);
  EXPECT_EQ(lab.client().sender().ssthresh(), 5.0 * kMss);
}

TEST(TcpRecovery, AProbeRepairsALostTail) {
  Lab lab = ready({});
  lab.loseData = {10};
  lab.net.run(50ms);
  Time begin = lab.net.now();
  lab.write(10 * kMss);
  lab.net.run(1s);
  ASSERT_EQ(lab.arrived.size(), 1u);
  EXPECT_EQ(lab.stats().timeouts, 0u);
  EXPECT_EQ(lab.stats().probes, 1u);
  std::vector<Seen> data = lab.data();
  ASSERT_EQ(data.size(), 11u);
  // After the delayed ACK of segment 9, shortly after that of 8: one segment is outstanding.
  Duration wait = data[10].at - begin;
  EXPECT_LE(wait, 200ms + 60ms);
  EXPECT_EQ(data[10].offset, 9 * kMss);
}

TEST(TcpRecovery, AProbeFindsALongerLostTailByRack) {
  Lab lab = ready({});
  lab.loseData = {7, 8, 9, 10};
  lab.net.run(50ms);
  Time begin = lab.net.now();
  lab.write(10 * kMss);
  lab.net.run(1s);
  ASSERT_EQ(lab.arrived.size(), 1u);
  EXPECT_EQ(lab.stats().timeouts, 0u);
  EXPECT_EQ(lab.stats().probes, 1u);
  EXPECT_EQ(lab.stats().fastRecoveries, 1u);
  // The probe is sent two SRTTs after the last ACK, its SACK arrives a round trip later, and then
  // the losses are repaired, in two parts by PRR.
  EXPECT_LT(lab.arrived[0].end - begin, 20ms + 40ms + 20ms + 5ms + 30ms + 1ms);
}

TEST(TcpRecovery, AProbeIsNewDataWhenThereIsSome) {
  Options tcp;
  tcp.initialWindow = 2;
  tcp.delayedAcks = false;
  Lab lab = ready(tcp);
  lab.loseData = {1, 2};
  lab.net.run(50ms);
  lab.write(5 * kMss);
  lab.net.run(45ms);
  std::vector<Seen> data = lab.data();
  ASSERT_EQ(data.size(), 3u);
  EXPECT_EQ(data[2].offset, 2 * kMss);
  EXPECT_EQ(data[2].at - data[0].at, 40ms) << "two SRTTs";
  lab.net.run(1s);
  EXPECT_EQ(lab.arrived.size(), 1u);
  EXPECT_EQ(lab.stats().timeouts, 0u);
}

TEST(TcpRecovery, AProbeThatRepairedALossCostsHalfTheWindow) {
  Options tcp;
  tcp.delayedAcks = false;
  Lab lab = ready(tcp);
  lab.loseData = {10};
  lab.net.run(50ms);
  lab.write(10 * kMss);
  lab.net.run(300ms);
  double before = lab.client().sender().cwnd();
  lab.write(2 * kMss);
  lab.net.run(30ms);
  EXPECT_LT(lab.client().sender().cwnd(), before);
  EXPECT_EQ(lab.stats().fastRecoveries, 0u);
}

TEST(TcpRecovery, AnUnneededProbeCostsNothing) {
  Options tcp;
  tcp.delayedAcks = false;
  Lab lab = ready(tcp);
  // The ACK of the last segment is lost, so the probe shows that the segment has arrived.
  int acks = 0;
  lab.lose = [&](const Seen& s) { return !s.fromClient && !s.tcp.isSyn() && ++acks == 10; };
  lab.net.run(50ms);
  lab.write(10 * kMss);
  lab.net.run(400ms);
  EXPECT_EQ(lab.stats().probes, 1u);
  EXPECT_EQ(lab.stats().dsacks, 1u);
  double before = lab.client().sender().cwnd();
  lab.write(2 * kMss);
  lab.net.run(30ms);
  EXPECT_GE(lab.client().sender().cwnd(), before);
}

// Found by a comparison with Linux: the segments of the first window queue behind each other, so
// their round trips are longer than that of the probe. RACK then took the probe's ACK for that of
// the first transmission (RFC 8985 section 6.2, step 2).
TEST(TcpRecovery, RackKnowsTheHandshakesRoundTrip) {
  LinkOptions slow{.rateBitsPerSecond = 10e6, .delay = 20ms};
  for (bool knows : {true, false}) {
    Options tcp;
    tcp.rackKnowsHandshake = knows;
    Lab lab({.tcp = tcp, .forth = slow, .back = slow});
    lab.net.run(100ms);
    lab.loseData = {6, 7};
    lab.write(7 * kMss);
    lab.net.run(2s);
    EXPECT_EQ(lab.server().received(), 7 * kMss);
    EXPECT_EQ(lab.stats().probes, 1u);
    EXPECT_EQ(lab.stats().timeouts, knows ? 0u : 1u);
    EXPECT_EQ(lab.stats().retransmitted, 2u);
  }
}

TEST(TcpRecovery, RackToleratesReorderingThatItHasSeen) {
  Options tcp;
  tcp.initialWindow = 20;
  for (bool rack : {true, false}) {
    tcp.rack = rack;
    Lab lab = ready(tcp);
    lab.delayBy = 4ms;  // less than a quarter of a round trip
    lab.net.run(50ms);
    lab.delayData = {1};
    lab.write(2 * kMss);
    lab.net.run(100ms);
    EXPECT_EQ(lab.stats().retransmitted, 0u);
    lab.delayData = {5, 9, 15};
    lab.write(20 * kMss);
    lab.net.run(100ms);
    EXPECT_EQ(lab.arrived.size(), 2u);
    EXPECT_EQ(lab.stats().retransmitted > 0, !rack);
    EXPECT_EQ(lab.client().sender().detector().rack().sawReordering(), rack);
  }
}

TEST(TcpRecovery, RackFindsALostRepair) {
  for (bool rack : {true, false}) {
    Options tcp = rack ? Options{} : counting();
    tcp.initialWindow = 20;
    Lab lab = ready(tcp);
    int losses = 0;
    lab.lose = [&](const Seen& s) {
      return s.tcp.payloadLength > 0 && s.offset == 0 && losses++ < 2;
    };
    lab.net.run(50ms);
    lab.write(60 * kMss);
    lab.net.run(1s);
    EXPECT_EQ(lab.arrived.size(), 1u);
    EXPECT_EQ(lab.stats().timeouts, rack ? 0u : 1u);
  }
}

TEST(TcpRecovery, ADsackWidensRacksWindow) {
  Rack rack;
  Scoreboard board;
  board.append(0, 1000, Time{});
  SentSegment s;
  s.begin = 1000, s.size = 1000;
  rack.onDelivered(s, Time{40ms}, {});
  EXPECT_EQ(rack.window(board, false, 1s), 10ms);
  EXPECT_EQ(rack.window(board, true, 1s), 0ms) << "no reordering was seen";
  s.begin = 0;
  rack.onDelivered(s, Time{40ms}, {});
  EXPECT_EQ(rack.window(board, true, 1s), 10ms);
  rack.onDsack(0, 5000);
  EXPECT_EQ(rack.window(board, true, 1s), 20ms);
  rack.onDsack(1000, 6000);
  EXPECT_EQ(rack.window(board, true, 1s), 20ms) << "once a round trip";
  rack.onDsack(5000, 7000);
  EXPECT_EQ(rack.window(board, true, 1s), 30ms);
  EXPECT_EQ(rack.window(board, true, 25ms), 25ms) << "at most SRTT";
  for (int i = 0; i < 16; ++i) rack.onRecoveryEnd();
  EXPECT_EQ(rack.window(board, true, 1s), 10ms);
}

/// Records the segments of a sender without a network.
struct Recorder final : SegmentOutlet {
  void transmit(const DataSegment& segment) override { sent.push_back({timeline.now(), segment}); }
  explicit Recorder(Timeline& t) : timeline(t) {}
  Timeline& timeline;
  std::vector<std::pair<Time, DataSegment>> sent;
};

constexpr uint64_t kRoom = 1 << 20;

Ack ackOf(uint64_t upTo) {
  Ack ack;
  ack.upTo = upTo;
  ack.window = kRoom;
  return ack;
}

// RFC 2018 section 8: a segment that was SACKed but is then not acknowledged is resent by the
// retransmission timer, which fires early, as in Linux.
TEST(TcpRecovery, WhatAReceiverTakesBackIsSentAgain) {
  Options rack;
  rack.tlp = false;
  for (const Options& tcp : {rack, counting()}) {
    Simulation timeline(1);
    Recorder out(timeline);
    Sender sender(timeline, out, tcp);
    Agreement agreed;
    agreed.mss = 1000;
    agreed.sack = true;
    agreed.peerWindow = kRoom;
    sender.open(agreed);
    sender.write(5000);
    ASSERT_EQ(out.sent.size(), 5u);
    timeline.run(20ms);
    Ack sacked = ackOf(3000);
    sacked.addSack({4000, 5000});
    sender.onAck(sacked);
    EXPECT_EQ(sender.flight(), 2000u);
    timeline.run(5ms);
    Time back = timeline.now();
    sender.onAck(ackOf(4000));
    size_t before = out.sent.size();
    timeline.run(100ms);
    ASSERT_GT(out.sent.size(), before);
    EXPECT_EQ(out.sent[before].second.bytes, (Range{4000, 5000}));
    EXPECT_GE(out.sent[before].first - back, 10ms);
    EXPECT_LE(out.sent[before].first - back, 15ms);
    EXPECT_EQ(sender.stats().timeouts, 1u);
    sender.onAck(ackOf(5000));
    timeline.run(1s);
    EXPECT_EQ(sender.acked(), 5000u);
    EXPECT_EQ(sender.stats().timeouts, 1u);
  }
}

TEST(TcpRecovery, EarlyRetransmitRepairsAWindowOfThree) {
  for (bool early : {true, false}) {
    Options tcp = counting();
    tcp.earlyRetransmit = early;
    Lab lab = ready(tcp);
    lab.loseData = {1};
    lab.net.run(50ms);
    lab.write(3 * kMss);
    lab.net.run(1s);
    EXPECT_EQ(lab.arrived.size(), 1u);
    EXPECT_EQ(lab.stats().timeouts, early ? 0u : 1u);
  }
}

TEST(TcpRecovery, LimitedTransmitSendsNewDataForDuplicates) {
  for (bool limited : {true, false}) {
    Options tcp = counting();
    tcp.initialWindow = 3;
    tcp.limitedTransmit = limited;
    tcp.delayedAcks = false;
    Lab lab = ready(tcp);
    lab.loseData = {1};
    lab.net.run(50ms);
    lab.write(20 * kMss);
    lab.net.run(21ms);
    EXPECT_EQ(lab.data().size(), limited ? 5u : 3u);
    lab.net.run(2s);
    EXPECT_EQ(lab.stats().timeouts, limited ? 0u : 1u);
    EXPECT_EQ(lab.arrived.size(), 1u);
  }
}

TEST(TcpRecovery, FackNeedsOneSackFarEnough) {
  for (bool fack : {true, false}) {
    Options tcp = counting();
    tcp.fack = fack;
    Lab lab = ready(tcp);
    lab.loseData = {6, 7, 8};
    lab.net.run(50ms);
    lab.write(10 * kMss);
    lab.net.run(1s);
    EXPECT_EQ(lab.arrived.size(), 1u);
    EXPECT_EQ(lab.stats().fastRecoveries, fack ? 1u : 0u);
    EXPECT_EQ(lab.stats().timeouts, fack ? 0u : 1u);
  }
}

TEST(TcpRecovery, HalfTheWindowIsLeftWithAndWithoutPrr) {
  for (bool prr : {true, false}) {
    Options tcp = counting();
    tcp.prr = prr;
    tcp.initialWindow = 20;
    tcp.delayedAcks = false;
    Lab lab = ready(tcp);
    lab.loseData = {1};
    lab.net.run(50ms);
    lab.write(400 * kMss);
    lab.net.run(21ms);
    EXPECT_TRUE(lab.client().sender().recovering());
    EXPECT_EQ(lab.client().sender().ssthresh(), 10.0 * kMss);
    lab.net.run(20ms);
    EXPECT_FALSE(lab.client().sender().recovering());
    EXPECT_NEAR(lab.client().sender().cwnd(), 10.0 * kMss, 2.0 * kMss);
    EXPECT_EQ(lab.stats().timeouts, 0u);
  }
}

TEST(TcpRecovery, PrrSendsOneForTwoThatArrive) {
  Prr prr;
  prr.begin(20 * kMss);
  // The first ACK of the recovery allows one retransmission.
  EXPECT_EQ(prr.window(kMss, 18 * kMss, 10.0 * kMss, kMss), 19.0 * kMss);
  prr.onSent(kMss);
  // 20 arrive, 10 are sent.
  EXPECT_EQ(prr.window(kMss, 18 * kMss, 10.0 * kMss, kMss), 18.0 * kMss);
  EXPECT_EQ(prr.window(kMss, 17 * kMss, 10.0 * kMss, kMss), 17.5 * kMss);
  EXPECT_EQ(prr.window(kMss, 16 * kMss, 10.0 * kMss, kMss), 17.0 * kMss);
}

TEST(TcpRecovery, PrrFillsUpWhenTheFlightFellBelowTheThreshold) {
  Prr prr;
  prr.begin(20 * kMss);
  EXPECT_EQ(prr.window(kMss, 4 * kMss, 10.0 * kMss, kMss), 6.0 * kMss)
      << "what arrived and one more";
  prr.onSent(2 * kMss);
  EXPECT_EQ(prr.window(2 * kMss, 4 * kMss, 10.0 * kMss, kMss), 7.0 * kMss);
  EXPECT_EQ(prr.window(90 * kMss, 4 * kMss, 10.0 * kMss, kMss), 10.0 * kMss)
      << "no further than ssthresh";
}

TEST(TcpRecovery, ALowerPathMtuIsTakenFromIcmp) {
  Lab lab = ready({});
  lab.net.run(50ms);
  for (uint64_t i = 1; i <= 10; ++i) lab.loseData.insert(i);
  lab.write(10 * kMss);
  // "Fragmentation needed" (RFC 1191), as stations deliver it to the port of the quoted packet.
  Bytes icmp = echoPacket({address("10.0.0.9"), address("10.0.0.1"), 1}, false, 0, 0, Bytes(28));
  icmp[20] = 3, icmp[21] = 4;
  store16(&icmp[26], 1000);
  std::optional<InnerPacket> parsed = parseInnerPacket(icmp);
  ASSERT_TRUE(parsed);
  lab.net.left().deliver(icmp, *parsed, ip::kTcp, 1000);
  lab.net.run(1s);
  EXPECT_EQ(lab.arrived.size(), 1u);
  EXPECT_EQ(lab.client().sender().mss(), 1000u - 52);
  EXPECT_EQ(lab.server().wrongBytes(), 0u);
  for (size_t i = 10; i < lab.data().size(); ++i) EXPECT_LE(lab.data()[i].tcp.payloadLength, 948u);
}

TEST(TcpRecovery, EveryPolicyGetsAllBytesThroughHeavyLoss) {
  for (int mask = 0; mask < 64; ++mask) {
    Options tcp;
    tcp.sack = mask & 1;
    tcp.rack = mask & 2;
    tcp.tlp = mask & 4;
    tcp.prr = mask & 8;
    tcp.timestamps = mask & 16;
    tcp.delayedAcks = mask & 32;
    LinkOptions forth = kWire;
    forth.rateBitsPerSecond = 50e6;
    forth.queueBytes = 30000;
    forth.loss = 0.1;
    Lab lab({.tcp = tcp,
             .forth = forth,
             .back = {.delay = 10ms, .loss = 0.05},
             .seed = 100u + static_cast<unsigned>(mask)});
    lab.write(100'000);
    lab.net.run(300s);
    EXPECT_EQ(lab.arrived.size(), 1u) << mask;
    EXPECT_EQ(lab.server().wrongBytes(), 0u);
    EXPECT_EQ(lab.client().sender().flight(), 0u);
    EXPECT_EQ(lab.client().sender().pipe(), 0u) << mask;
  }
}

}  // namespace
}  // namespace braid::sim::tcp::recovery_test
