// The limits of the shim: nothing is repeated endlessly, stored forever, or believed after it has
// become wrong.

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

// The leg took 0.4 ms; from now on it takes 30 ms. The shim must make few useless replays.
TEST(LimitsTest, ALegThatBecameSlowerIsLearned) {
  Rig rig;
  rig.open({.leg = 400us, .byPeer = true});
  auto connect = [&](uint16_t port) {
    (void)rig.peerPacket(packetOf({.seq = kPeerIsn, .flags = kSyn}, false, false, 0, port));
    rig.pass(30ms);
    Seg answer{.seq = kHostIsn, .ack = kPeerIsn + 1, .flags = kSyn | kAck};
    rig.hostPacket(packetOf(answer, true, false, 0, port));
    rig.pass(10ms);
    (void)rig.peerPacket(
        packetOf({.seq = kPeerIsn + 1, .ack = kHostIsn + 1}, false, false, 0, port));
  };
  for (uint16_t port = 2000; port < 2010; ++port) connect(port);
  uint64_t before = rig.count(Actuator::kSynReplay).fired;
  for (uint16_t port = 3000; port < 3010; ++port) connect(port);
  EXPECT_EQ(rig.count(Actuator::kSynReplay).fired, before);
}

// Without D-SACK the shim cannot know which copy was answered. So the limit of three copies of each
// segment becomes one.
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

// Dropped by the queue's byte limit, from the head of a flow.
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
  rig.tunnelDrops(Rig::hostSeg(4));  // above the gap that the sender already knows
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

// The sender would drop timestamps older than those it has seen (RFC 7323 section 5).
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
    (void)rig.peer({.seq = kPeerIsn + 1,
                    .ack = kHostIsn + 1 + (i + 1) * 1000,
                    .ts = TcpTimestamps{peer, host}});
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
  // a flow that the shim joined in the middle
  rig.host({.seq = kHostIsn, .ack = kPeerIsn, .length = 10});
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
  rig.host({.seq = kHostIsn + 3501, .flags = kRst});  // the state from before is lost
  EXPECT_TRUE(rig.flow()->resetSuspected);
  EXPECT_EQ(rig.peerAcks(1), Verdict::kPass);
}

// A packet that says more than an ACK is never dropped. Here it says that its sender has reduced
// its window (RFC 3168, CWR).
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

// Karn's rule: it is unknown which copy was acknowledged.
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

// Long outages with many flows: the shim does not ask for a timer in a loop.
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
