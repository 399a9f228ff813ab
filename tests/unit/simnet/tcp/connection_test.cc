// Handshake, messages, delayed ACKs and options of a TCP connection in virtual time.

#include <gtest/gtest.h>

#include "inet/ip.h"
#include "simnet/tcp/connection.h"
#include "tests/unit/simnet/tcp/lab.h"

namespace braid::sim::tcp::connection_test {
namespace {

TEST(TcpConnection, AMessageTakesItsRoundTrips) {
  Lab lab({.forth = {.delay = 10ms}, .back = {.delay = 10ms}});
  Time begin = lab.net.now();
  lab.write(10 * 1448);
  lab.net.run(100ms);
  ASSERT_EQ(lab.arrived.size(), 1u);
  EXPECT_EQ(lab.arrived[0].end - begin, 30ms) << "handshake and half a round trip";
  EXPECT_EQ(lab.client().establishedAt() - begin, 20ms);
  EXPECT_EQ(lab.server().wrongBytes(), 0u);
  EXPECT_EQ(lab.data().size(), 10u);
  EXPECT_EQ(lab.client().sender().mss(), 1448u);
}

TEST(TcpConnection, WithoutTimestampsASegmentIsTwelveBytesLarger) {
  Lab lab({.tcp = {.timestamps = false}});
  lab.write(14600);
  lab.net.run(100ms);
  EXPECT_EQ(lab.data().size(), 10u);
  EXPECT_EQ(lab.client().sender().mss(), 1460u);
  for (const Seen& s : lab.packets) EXPECT_FALSE(s.options.timestamps);
}

TEST(TcpConnection, MessagesInBothDirectionsArriveInOrder) {
  Lab lab({});
  std::vector<int> order;
  for (int i = 0; i < 5; ++i) {
    lab.client().send(10000, [&, i](const Message&) {
      order.push_back(i);
      lab.server().send(50000, [&, i](const Message&) { order.push_back(100 + i); });
    });
  }
  lab.net.run(2s);
  EXPECT_EQ(order.size(), 10u);
  std::vector<int> forth, back;
  for (int i : order) (i < 100 ? forth : back).push_back(i);
  EXPECT_EQ(forth, (std::vector{0, 1, 2, 3, 4}));
  EXPECT_EQ(back, (std::vector{100, 101, 102, 103, 104}));
  EXPECT_EQ(lab.server().wrongBytes() + lab.client().wrongBytes(), 0u);
  EXPECT_EQ(lab.client().received(), 250000u);
  EXPECT_EQ(lab.client().pending() + lab.server().pending(), 0u);
}

TEST(TcpConnection, ALostSynIsSentAgainAfterASecond) {
  Lab lab({});
  int lost = 0;
  lab.lose = [&](const Seen& s) { return s.tcp.isSyn() && s.fromClient && lost++ < 1; };
  Time begin = lab.net.now();
  lab.connection.abort();  // the lab's connection has already sent its SYN
  Connection second(lab.net, lab.net.left(), lab.net.right(), {1001, 81}, {});
  lab.net.run(3s);
  ASSERT_TRUE(second.client().established());
  EXPECT_EQ(second.client().synTimeouts(), 1u);
  EXPECT_GT(second.client().establishedAt() - begin, 1020ms);
  EXPECT_LT(second.client().establishedAt() - begin, 1021ms);
  EXPECT_EQ(second.client().sender().cwnd(), 10 * 1448);
  EXPECT_EQ(second.client().sender().rto().value(), 3s) << "RFC 6298, rule 5.7";
}

TEST(TcpConnection, ALostSynAckIsSentAgain) {
  Lab lab({});
  int lost = 0;
  lab.lose = [&](const Seen& s) { return s.tcp.isSyn() && !s.fromClient && lost++ < 2; };
  lab.write(1000);
  Time begin = lab.net.now();
  lab.net.run(5s);
  ASSERT_EQ(lab.arrived.size(), 1u);
  EXPECT_GT(lab.arrived[0].end - begin, 1s);
  EXPECT_LT(lab.arrived[0].end - begin, 3100ms);
}

TEST(TcpConnection, TwoLostSynsLeaveAWindowOfOneSegment) {
  Lab lab({});
  int lost = 0;
  lab.lose = [&](const Seen& s) { return s.tcp.isSyn() && s.fromClient && lost++ < 2; };
  lab.connection.abort();
  Connection second(lab.net, lab.net.left(), lab.net.right(), {1001, 81}, {});
  lab.net.run(3100ms);
  ASSERT_TRUE(second.client().established());
  EXPECT_EQ(second.client().sender().cwnd(), 1448);
}

TEST(TcpConnection, ALostLastAckOfTheHandshakeCostsNothing) {
  Lab lab({});
  int acks = 0;
  lab.lose = [&](const Seen& s) { return s.fromClient && !s.tcp.isSyn() && acks++ < 1; };
  lab.net.run(50ms);
  EXPECT_FALSE(lab.server().established());
  lab.write(1000);
  lab.net.run(50ms);
  EXPECT_EQ(lab.arrived.size(), 1u);
  EXPECT_TRUE(lab.server().established());
}

TEST(TcpConnection, EverySecondSegmentIsAcknowledgedAtOnce) {
  Lab lab({.forth = {.delay = 10ms}, .back = {.delay = 10ms}});
  lab.net.run(50ms);
  lab.write(4 * 1448);
  lab.net.run(30ms);
  EXPECT_EQ(lab.acks().size(), 2u);
}

TEST(TcpConnection, ALastOddSegmentIsAcknowledgedAfterTheDelay) {
  Lab lab({.forth = {.delay = 10ms}, .back = {.delay = 10ms}});
  lab.net.run(50ms);
  Time begin = lab.net.now();
  lab.write(1448);
  lab.net.run(100ms);
  ASSERT_EQ(lab.acks().size(), 1u);
  EXPECT_EQ(lab.acks()[0].at - begin, 10ms + 40ms);
}

TEST(TcpConnection, WithoutDelayedAcksEachSegmentIsAcknowledged) {
  Lab lab({.tcp = {.delayedAcks = false}});
  lab.net.run(50ms);
  lab.write(5 * 1448);
  lab.net.run(100ms);
  EXPECT_EQ(lab.acks().size(), 5u);
}

TEST(TcpConnection, AnAnswerCarriesTheDelayedAck) {
  Lab lab({});
  lab.net.run(50ms);
  lab.client().send(1000, [&](const Message&) { lab.server().send(2000); });
  lab.net.run(30ms);
  EXPECT_EQ(lab.acks().size(), 0u);
  EXPECT_EQ(lab.client().sender().acked(), 1000u);
}

TEST(TcpConnection, ASegmentBehindAGapIsAcknowledgedAtOnceWithSack) {
  Lab lab({});
  lab.loseData = {1};
  lab.net.run(50ms);
  lab.write(3 * 1448);
  lab.net.run(12ms);
  ASSERT_EQ(lab.acks().size(), 2u);
  Seen last = lab.acks()[1];
  ASSERT_EQ(last.options.sackCount, 1);
  EXPECT_EQ(last.options.sacks[0].end - last.options.sacks[0].begin, 2 * 1448);
  EXPECT_EQ(last.options.sacks[0].begin - Seq{last.tcp.ack}, 1448);
}

TEST(TcpConnection, WhatArrivesTwiceIsReportedByDsack) {
  Options tcp;
  tcp.redundancy = Redundancy::kProactive;
  Lab lab({.tcp = tcp});
  lab.net.run(50ms);
  lab.write(1448);
  lab.net.run(50ms);
  ASSERT_EQ(lab.acks().size(), 1u);
  ASSERT_EQ(lab.acks()[0].options.sackCount, 1);
  EXPECT_EQ(Seq{lab.acks()[0].tcp.ack} - lab.acks()[0].options.sacks[0].begin, 1448);
  EXPECT_EQ(lab.stats().dsacks, 1u);
  EXPECT_EQ(lab.server().receiver().stats().repeats, 1u);
}

TEST(TcpConnection, TheIdleWindowStartsAgain) {
  for (bool restart : {true, false}) {
    Lab lab({.tcp = {.idleRestart = restart}});
    lab.write(1'000'000);
    lab.net.run(1s);
    double before = lab.client().sender().cwnd();
    EXPECT_GT(before, 20 * 1448);
    lab.net.run(5s);
    lab.write(1'000'000);
    EXPECT_EQ(lab.client().sender().cwnd(), restart ? 10 * 1448 : before);
    EXPECT_EQ(lab.stats().idleRestarts, restart ? 1u : 0u);
    lab.net.run(1s);
    EXPECT_EQ(lab.arrived.size(), 2u);
  }
}

TEST(TcpConnection, APauseShorterThanTheTimeoutKeepsTheWindow) {
  Lab lab({});
  lab.write(1'000'000);
  lab.net.run(1s);
  while (lab.client().sender().flight() > 0) lab.net.run(1ms);
  lab.write(1448);
  lab.net.run(150ms);
  double before = lab.client().sender().cwnd();
  lab.write(1448);
  EXPECT_EQ(lab.client().sender().cwnd(), before);
}

// RFC 1191: a router loses what is too large and says how much would pass.
TEST(TcpConnection, SegmentsTooLargeForThePathGoAgainAtOnceInSmallerOnes) {
  constexpr uint16_t kMtu = 1000;
  for (bool limitedTransmit : {true, false}) {
    Lab lab({.tcp = {.sack = false, .timestamps = false, .limitedTransmit = limitedTransmit}});
    lab.lose = [&](const Seen& s) {
      bool tooLarge = s.fromClient && s.tcp.payloadLength + 40u > kMtu;
      if (!tooLarge) return false;
      lab.net.after(5ms, [&] {
        Bytes message(8 + ip::kV4Header + 8);
        message[0] = 3, message[1] = 4;  // fragmentation needed
        store16(&message[6], kMtu);
        IpFields router{address("192.0.2.1"), lab.net.left().host(false), ip::kIcmp};
        Bytes packet = ipPacket(router, message, 2);
        lab.net.left().deliver(packet, parseInnerPacket(packet).value(), ip::kTcp, 1000);
      });
      return true;
    };
    lab.write(20 * 1460);
    lab.net.run(190ms);  // less than the least timeout
    EXPECT_EQ(lab.arrived.size(), 1u) << limitedTransmit;
    EXPECT_EQ(lab.stats().timeouts, 0u);
    EXPECT_EQ(lab.client().tooBigs(), 10u) << "one for each segment of the first window";
    EXPECT_EQ(lab.client().sender().mss(), kMtu - 40u);
    EXPECT_EQ(lab.server().wrongBytes(), 0u);
  }
}

TEST(TcpConnection, TheReceiverCountsGapsRepeatsAndItsLongestStall) {
  Options tcp;
  tcp.sack = tcp.timestamps = tcp.delayedAcks = false;
  Lab lab({.tcp = tcp, .forth = {.delay = 10ms}, .back = {.delay = 10ms}});
  const ReceiverStats& stats = lab.server().receiver().stats();
  lab.loseData = {2, 7};
  lab.net.run(500ms);
  lab.server().receiver().restartStall();
  lab.write(5 * 1460);  // the second is lost: three duplicate ACKs
  lab.net.run(100ms);
  EXPECT_EQ(stats.gaps, 3u);
  EXPECT_EQ(stats.longestStall, 20ms) << "until it was sent again";
  Time before = lab.net.now();
  lab.write(1460);  // lost: a timeout
  lab.net.run(1s);
  EXPECT_EQ(stats.longestStall, 280ms) << "70 ms of silence and the timeout's 210";
  EXPECT_EQ(stats.progressAt, before + 210ms);
  EXPECT_EQ(stats.repeats, 0u);
  lab.server().receiver().restartStall();
  EXPECT_EQ(stats.longestStall, 0ms);
}

TEST(TcpConnection, OverIpv6) {
  Lab lab({.tcp = {.v6 = true}});
  lab.write(100'000);
  lab.net.run(1s);
  EXPECT_EQ(lab.arrived.size(), 1u);
  EXPECT_EQ(lab.server().wrongBytes(), 0u);
}

TEST(TcpConnection, AfterAbortNothingIsSentOrTold) {
  Lab lab({});
  lab.write(1'000'000);
  lab.net.run(35ms);
  lab.connection.abort();
  size_t packets = lab.packets.size();
  lab.write(1000);
  lab.net.run(5s);
  EXPECT_EQ(lab.packets.size(), packets);
  EXPECT_TRUE(lab.arrived.empty());
}

TEST(TcpConnection, TheSameSeedGivesTheSame) {
  auto run = [] {
    Lab lab({.forth = {.rateBitsPerSecond = 20e6, .delay = 5ms, .loss = 0.02}, .seed = 7});
    lab.write(2'000'000);
    lab.net.run(20s);
    EXPECT_EQ(lab.arrived.size(), 1u);
    std::vector<Time> times;
    for (const Seen& s : lab.packets) times.push_back(s.at);
    return times;
  };
  EXPECT_EQ(run(), run());
}

}  // namespace
}  // namespace braid::sim::tcp::connection_test
