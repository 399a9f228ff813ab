// Where the shim stops: nothing is repeated without end, kept for good, or believed for longer than it is
// true.

#include <gtest/gtest.h>

#include "tests/unit/ackshim/rig.h"

namespace braid::limits_test {
namespace {

using test::kHostIsn;
using test::kPeerIsn;
using test::packetOf;
using test::Rig;
using test::Seg;
using Verdict = AckShim::Verdict;

constexpr uint8_t kSyn = TcpFields::kSyn, kAck = TcpFields::kAck, kRst = TcpFields::kRst;

// The leg took 0.4 ms; from now on it takes 30. What is repeated for nothing becomes rare.
TEST(LimitsTest, ALegThatBecameSlowerIsLearned) {
  Rig rig;
  rig.open({.leg = 400us, .byPeer = true});
  auto connect = [&](uint16_t port) {
    (void)rig.peerPacket(packetOf({.seq = kPeerIsn, .flags = kSyn}, false, false, 0, port));
    rig.pass(30ms);
    Seg answer{.seq = kHostIsn, .ack = kPeerIsn + 1, .flags = kSyn | kAck};
    rig.hostPacket(packetOf(answer, true, false, 0, port));
    rig.pass(10ms);
    (void)rig.peerPacket(packetOf({.seq = kPeerIsn + 1, .ack = kHostIsn + 1}, false, false, 0, port));
  };
  for (uint16_t port = 2000; port < 2010; ++port) connect(port);
  uint64_t before = rig.count(Actuator::kSynReplay).fired;
  for (uint16_t port = 3000; port < 3010; ++port) connect(port);
  EXPECT_EQ(rig.count(Actuator::kSynReplay).fired, before);
}

// Without D-SACK it cannot be known which copy was answered: three copies of each become one at most.
TEST(LimitsTest, WithinAConnectionItIsLearnedInPart) {
  Rig rig;
  rig.open({.leg = 400us, .byPeer = true});
  auto lone = [&](uint32_t i) {
    (void)rig.peer(Rig::peerSeg(i));
    rig.pass(30ms);
    rig.hostAcks(i + 1);
    rig.pass(50ms);
  };
  for (uint32_t i = 0; i < 8; ++i) lone(i);
  uint64_t before = rig.count(Actuator::kFarReplay).fired;
  for (uint32_t i = 8; i < 14; ++i) lone(i);
  EXPECT_LE(rig.count(Actuator::kFarReplay).fired, before + 6);
}

// As the byte bound drops them, from the head of a flow.
TEST(LimitsTest, WhatTheTunnelDroppedIsNotSacked) {
  Rig rig;
  rig.open({});
  rig.hostSends(0, 6);
  for (uint32_t i = 0; i < 3; ++i) rig.tunnelDrops(Rig::hostSeg(i));
  rig.passUntilSpoken(1s);
  auto said = rig.takeToHost();
  ASSERT_EQ(said.size(), 3u);
  EXPECT_EQ(said[0].sacks(), std::vector<SeqRange>{Rig::hostRange(3, 6)});
  rig.pass(1ms);
  rig.tunnelDrops(Rig::hostSeg(4));  // above the hole that the sender knows of
  rig.pass(2ms);
  EXPECT_TRUE(rig.takeToHost().empty());
}

TEST(LimitsTest, AllOfItDroppedGoesAgainByTheShim) {
  Rig rig;
  rig.open({});
  rig.hostSends(0, 3);
  for (uint32_t i = 0; i < 3; ++i) rig.tunnelDrops(Rig::hostSeg(i));
  rig.passUntilSpoken(1s);
  EXPECT_TRUE(rig.takeToHost().empty());
  auto again = rig.takeToPeer();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].bytes, packetOf(Rig::hostSeg(0), true));
}

TEST(LimitsTest, ACopyThatIsDroppedAgainAndAgainIsGivenUp) {
  Rig rig;
  rig.open({});
  rig.hostSends(0, 1);
  rig.tunnelDrops(Rig::hostSeg(0));
  size_t copies = 0;
  while (rig.passUntilSpoken(2s) < 2s) {
    copies += rig.takeToPeer().size();
    (void)rig.takeToHost();
    rig.tunnelDrops(Rig::hostSeg(0));
  }
  EXPECT_GE(copies, 1u);
  EXPECT_LE(copies, 20u);  // 200 ms of 10 ms each
  EXPECT_EQ(rig.shim.cachedPackets(), 0u);
}

// Timestamps older than what the sender has seen would be dropped by it (RFC 7323 section 5).
TEST(LimitsTest, TimestampsAreFreshAfterALargePhase) {
  AckShimOptions options;
  options.gamma = 5000;
  Rig rig(options);
  rig.open({.timestamps = true});
  uint32_t host = 200, peer = 800;
  auto send = [&](uint32_t i) {
    Seg s = Rig::hostSeg(i);
    s.ts = {host, peer};
    rig.host(s);
  };
  for (uint32_t i = 0; i < 40; ++i) {
    send(i);
    rig.pass(10ms);
    host += 10, peer += 10;
    (void)rig.peer(
        {.seq = kPeerIsn + 1, .ack = kHostIsn + 1 + (i + 1) * 1000, .ts = TcpTimestamps{peer, host}});
  }
  rig.pass(10s);
  for (uint32_t i = 40; i < 43; ++i) send(i);
  rig.passUntilSpoken(1s);
  auto said = rig.takeToHost();
  ASSERT_FALSE(said.empty());
  EXPECT_EQ(said[0].options.timestamps, (TcpTimestamps{peer, host}));
}

TEST(LimitsTest, SegmentsBehindAHoleAreNotKeptForGood) {
  Rig rig;
  rig.open({});
  rig.peerSends(1, 17);
  EXPECT_EQ(rig.shim.cachedPackets(), 16u);
  rig.pass(300ms);
  EXPECT_EQ(rig.shim.cachedPackets(), 0u);
}

TEST(LimitsTest, NorAreThoseOfAConnectionWithoutRtt) {
  Rig rig;
  rig.host({.seq = kHostIsn, .ack = kPeerIsn, .length = 10});  // joined in its middle
  (void)rig.peer({.seq = kPeerIsn, .ack = kHostIsn + 10, .length = 10});
  (void)rig.peer({.seq = kPeerIsn + 10, .ack = kHostIsn + 10, .length = 10});
  rig.pass(300ms);
  EXPECT_EQ(rig.shim.cachedPackets(), 0u);
}

TEST(LimitsTest, AReplayThatWasGivenUpDoesNotDelayTheNext) {
  Rig rig;
  rig.open({});
  rig.peerSends(0, 1);
  rig.pass(1500ms);
  EXPECT_GE(rig.takeToHost().size(), 3u);
  rig.peerSends(0, 1);  // by the sender's timer
  EXPECT_LE(rig.passUntilSpoken(1s), 12ms);
}

TEST(LimitsTest, AChallengeAckComesThroughAfterAReset) {
  Rig rig;
  rig.open({});
  rig.hostSends(0, 3);
  rig.pass(10ms);
  (void)rig.peerAcks(1);
  rig.passUntilSpoken(1s);
  EXPECT_TRUE(rig.flow()->tracks.isRecovering());
  rig.host({.seq = kHostIsn + 3501, .flags = kRst});  // what was before it is lost
  EXPECT_TRUE(rig.flow()->doubtful);
  EXPECT_EQ(rig.peerAcks(1), Verdict::kPass);
}

// What says more than an ACK is never dropped: here that the sender of it has reduced its window (RFC 3168).
TEST(LimitsTest, InARecoveryNothingThatSpeaksIsDropped) {
  for (uint8_t flag : {TcpFields::kEce, TcpFields::kCwr, TcpFields::kUrg}) {
    Rig rig;
    rig.open({});
    rig.hostSends(0, 3);
    rig.pass(10ms);
    (void)rig.peerAcks(1);
    rig.passUntilSpoken(1s);
    Seg ack{.seq = kPeerIsn + 1, .ack = kHostIsn + 1001};
    EXPECT_EQ(rig.peer(ack), Verdict::kDrop);
    ack.flags |= flag;
    EXPECT_EQ(rig.peer(ack), Verdict::kPass);
  }
}

// Karn: nobody knows which copy is acknowledged.
TEST(LimitsTest, ACopyIntoTheTunnelMeasuresNothing) {
  Rig rig;
  rig.open({});
  rig.hostSends(0, 1);
  Duration before = rig.flow()->out.rtt.smoothed();
  rig.tunnelDrops(Rig::hostSeg(0));
  rig.passUntilSpoken(1s);
  EXPECT_EQ(rig.takeToPeer().size(), 1u);
  rig.pass(10ms);
  (void)rig.peerAcks(1);
  EXPECT_EQ(rig.flow()->out.rtt.smoothed(), before);
}

// Long outages, many flows: nothing is asked in a loop.
TEST(LimitsTest, TheTunnelIsNotAskedForEver) {
  Rig rig;
  rig.open({.rtt = 2ms, .leg = 1ms});
  rig.hostSends(0, 3);
  rig.carrying = true;
  rig.pass(1s);
  uint64_t silent = rig.shim.counters().silent;
  rig.pass(60s);
  EXPECT_EQ(rig.shim.counters().silent, silent);
}

}  // namespace
}  // namespace braid::limits_test
