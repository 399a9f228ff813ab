// The segments that are replayed to a local receiver, and when. The leg's RTT is 2 ms, and after
// the handshake's sample its variation is 1 ms. So the shim waits for the ACK of a segment for
// max(2 + 4 * 1, 2 * 2) + 3 = 9 ms. A timer tick is 0.25 ms.

#include <gtest/gtest.h>

#include "inet/ip.h"
#include "tests/unit/ackshim/rig.h"

namespace braid::to_receiver_test {
namespace {

using test::kHostIsn;
using test::kPeerIsn;
using test::Rig;
using test::Seg;

TEST(ToReceiverTest, TheOnlySegmentAgainAfterTheLegsTime) {
  for (bool byPeer : {false, true}) {
    Rig rig;
    rig.open({.byPeer = byPeer});
    test::Bytes original = test::packetOf(Rig::peerSeg(0), false);
    (void)rig.peerPacket(original);
    Duration waited = rig.passUntilSpoken(1s);
    EXPECT_GE(waited, 9ms);
    EXPECT_LE(waited, 9500us);
    auto again = rig.takeToHost();
    ASSERT_EQ(again.size(), 1u);
    EXPECT_EQ(again[0].bytes, original);
    rig.pass(2ms);
    rig.hostAcks(1);
    EXPECT_EQ(rig.count(Actuator::kFarReplay).fired, 1u);
    EXPECT_EQ(rig.count(Actuator::kFarReplay).useful, 1u);
    EXPECT_EQ(rig.shim.cachedPackets(), 0u);
    EXPECT_EQ(rig.passUntilSpoken(1s), 1s);
  }
}

// The ACK of seven gives another sample of 2 ms: variation 0.75 ms, 5 + 3 = 8 ms from when they
// were given.
TEST(ToReceiverTest, TheLastThreeOfTenOneLegRttEach) {
  Rig rig;
  rig.open({});
  rig.peerSends(0, 10);
  Time given = rig.now;
  rig.pass(2ms);
  rig.hostAcks(7);
  for (uint32_t i = 7; i < 10; ++i) {
    rig.passUntilSpoken(1s);
    auto again = rig.takeToHost();
    ASSERT_EQ(again.size(), 1u) << i;
    EXPECT_EQ(again[0].seq(), Rig::peerSeg(i).seq);
    Duration sinceGiven = rig.now - given;
    EXPECT_GE(sinceGiven, 8ms + (i - 7) * 2ms);
    EXPECT_LE(sinceGiven, 8ms + (i - 7) * 2ms + (i - 6) * 500us);
    rig.pass(2ms);
    rig.hostAcks(i + 1);
  }
  EXPECT_EQ(rig.count(Actuator::kFarReplay).useful, 3u);
}

// 9, 27, 63 and 135 ms; the next would be at 279 ms, beyond the sender's own timer.
TEST(ToReceiverTest, BacksOffAndLeavesTheRestToTheSendersTimer) {
  Rig rig;
  rig.open({});
  rig.peerSends(0, 1);
  Time given = rig.now;
  std::vector<Duration> times;
  while (rig.passUntilSpoken(2s) < 2s) {
    times.push_back(rig.now - given);
    rig.takeToHost();
  }
  ASSERT_EQ(times.size(), 4u);
  EXPECT_NEAR(toMilliseconds(times[0]), 9, 0.5);
  EXPECT_NEAR(toMilliseconds(times[1]), 27, 1);
  EXPECT_NEAR(toMilliseconds(times[2]), 63, 1.5);
  EXPECT_NEAR(toMilliseconds(times[3]), 135, 2);
  EXPECT_EQ(rig.shim.cachedPackets(), 0u);
}

TEST(ToReceiverTest, AcknowledgedInTimeNothingIsSentAgain) {
  Rig rig;
  rig.open({});
  for (uint32_t i = 0; i < 50; ++i) {
    rig.peerSends(i, i + 1);
    EXPECT_EQ(rig.passUntilSpoken(2400us), 2400us);  // 20 % more than the leg's RTT
    rig.hostAcks(i + 1);
  }
  EXPECT_EQ(rig.passUntilSpoken(1s), 1s);
}

// Waits for four round trips of 10 ms plus the leg's 8 ms after the last data.
TEST(ToReceiverTest, ASenderThatHearsThreeDuplicatesMayRepairItself) {
  Rig rig;
  rig.open({});
  rig.peerSends(0, 5);
  rig.pass(2ms);
  rig.hostAcks(1);
  for (uint32_t i = 3; i <= 5; ++i)
    rig.hostAcks(1, {{{kPeerIsn + 2001}, {kPeerIsn + 1 + i * 1000}}});
  EXPECT_EQ(rig.passUntilSpoken(45ms), 45ms);
  // The sender's retransmission is also lost. 8 ms later the gateway replays it.
  rig.peerSends(1, 2);
  Duration waited = rig.passUntilSpoken(1s);
  EXPECT_GE(waited, 8ms);
  EXPECT_LE(waited, 8500us);
  EXPECT_EQ(rig.takeToHost()[0].seq(), Rig::peerSeg(1).seq);
}

// RACK (RFC 8985 section 6.2) needs one segment above the gap. A repair by the shim looks to it
// like reordering, for which it then waits at every later loss. So the shim waits for two round
// trips of 10 ms plus the leg's 8 ms after the last data.
TEST(ToReceiverTest, ASenderThatHearsOfAHoleBySackMayRepairItself) {
  Rig rig;
  rig.open({});
  rig.peerSends(0, 5);
  rig.pass(2ms);
  rig.hostAcks(3);
  rig.hostAcks(3, {{{kPeerIsn + 4001}, {kPeerIsn + 5001}}});
  EXPECT_EQ(rig.passUntilSpoken(20ms), 20ms);
  EXPECT_LE(rig.passUntilSpoken(1s), 8500us);  // no repair came
  EXPECT_EQ(rig.takeToHost()[0].seq(), Rig::peerSeg(3).seq);
}

TEST(ToReceiverTest, WithoutSackOneDuplicateTellsItNothing) {
  Rig rig;
  rig.open({.sack = false});
  rig.peerSends(0, 5);
  rig.pass(2ms);
  rig.hostAcks(3);
  rig.hostAcks(3);
  EXPECT_LE(rig.passUntilSpoken(1s), 6500us);
  EXPECT_EQ(rig.takeToHost()[0].seq(), Rig::peerSeg(3).seq);
}

// gVisor's netstack without SACK, when the first segment of the connection is lost.
TEST(ToReceiverTest, ASenderThatIgnoresThreeDuplicatesIsHelped) {
  Rig rig;
  rig.open({.sack = false});
  rig.peerSends(0, 5);
  Time given = rig.now;
  rig.pass(2ms);
  for (int i = 0; i < 4; ++i) rig.hostAcks(0);
  rig.passUntilSpoken(1s);
  EXPECT_GE(rig.now - given, 40ms + 9ms);
  EXPECT_LE(rig.now - given, 40ms + 9500us);
  auto again = rig.takeToHost();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].seq(), Rig::peerSeg(0).seq);
  rig.pass(2ms);
  rig.hostAcks(5);
  EXPECT_EQ(rig.count(Actuator::kFarReplay).useful, 1u);
}

// Four round trips are longer than the sender's minimum timer.
TEST(ToReceiverTest, ASenderFarAwayThatIgnoresThreeDuplicatesIsLeftToItsTimer) {
  Rig rig;
  rig.open({.sack = false, .rtt = 60ms});
  rig.peerSends(0, 5);
  rig.pass(2ms);
  for (int i = 0; i < 4; ++i) rig.hostAcks(0);
  EXPECT_EQ(rig.passUntilSpoken(2s), 2s);
}

// lwIP's timer is at least 1.5 s, and the next one 5 s, so its retransmission must not be lost.
TEST(ToReceiverTest, TheRetransmissionOfALargeFlowAfterASilenceIsKept) {
  Rig rig;
  rig.open({.sack = false});
  constexpr uint32_t kSegments = 101;  // more than gamma
  for (uint32_t i = 0; i < kSegments; ++i) {
    rig.peerSends(i, i + 1);
    rig.pass(2ms);
    rig.hostAcks(i + 1);
  }
  rig.peerSends(kSegments, kSegments + 2);
  EXPECT_EQ(rig.passUntilSpoken(1500ms), 1500ms) << "a large flow is left alone";
  rig.peerSends(kSegments, kSegments + 1);
  Duration waited = rig.passUntilSpoken(1s);
  EXPECT_GE(waited, 47ms);  // twice the leg's 2 ms, 3 ms, and 40 ms for the ACK of a lone segment
  EXPECT_LE(waited, 47500us);
  auto again = rig.takeToHost();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].seq(), Rig::peerSeg(kSegments).seq);
}

TEST(ToReceiverTest, AHostThatAnswersMayDelayItsAckOfALoneSegment) {
  Rig rig;
  rig.open({});
  rig.peerSends(0, 1);
  rig.pass(2ms);
  rig.host({.seq = kHostIsn + 1, .ack = kPeerIsn + 1001, .length = 100});  // an answer
  (void)rig.peer({.seq = kPeerIsn + 1001, .ack = kHostIsn + 101, .length = 1000});
  Duration waited = rig.passUntilSpoken(1s);
  EXPECT_GE(waited, 48ms);  // 8 + 40
  EXPECT_LE(waited, 48500us);
}

TEST(ToReceiverTest, TwoSegmentsMustBeAcknowledgedAtOnce) {
  Rig rig;
  rig.open({});
  rig.peerSends(0, 1);
  rig.pass(2ms);
  rig.host({.seq = kHostIsn + 1, .ack = kPeerIsn + 1001, .length = 100});
  for (uint32_t i = 1; i < 3; ++i)
    (void)rig.peer({.seq = kPeerIsn + 1 + i * 1000, .ack = kHostIsn + 101, .length = 1000});
  EXPECT_LE(rig.passUntilSpoken(1s), 8500us);
}

// 0.1 ms is less than half of 0.4 ms, but the gateway's clock is not more precise than that.
TEST(ToReceiverTest, OnAVeryShortLegAQuickAckIsNoProofAgainstAReplay) {
  Rig rig;
  rig.open({.leg = 400us});
  rig.peerSends(0, 1);
  rig.passUntilSpoken(1s);
  rig.takeToHost();
  rig.pass(100us);
  rig.hostAcks(1);
  EXPECT_EQ(rig.count(Actuator::kFarReplay).useful, 1u);
  EXPECT_EQ(rig.count(Actuator::kFarReplay).spurious, 0u);
}

TEST(ToReceiverTest, AfterADsackItWaitsLongerAfterTwoItLeavesTheFlowAlone) {
  Rig rig;
  rig.open({});
  rig.peerSends(0, 1);
  rig.passUntilSpoken(1s);
  rig.takeToHost();
  rig.pass(500us);
  rig.hostAcks(1);  // half a leg RTT later, which shows that the first one had arrived
  EXPECT_EQ(rig.count(Actuator::kFarReplay).spurious, 1u);
  rig.pass(100ms);
  rig.peerSends(1, 2);
  Duration waited = rig.passUntilSpoken(1s);
  EXPECT_GE(waited, 40ms);
  rig.takeToHost();
  rig.pass(2ms);
  rig.hostAcks(2);
  EXPECT_EQ(rig.count(Actuator::kFarReplay).useful, 1u);
  rig.hostAcks(2, {{{kPeerIsn + 1001}, {kPeerIsn + 2001}}});
  EXPECT_EQ(rig.count(Actuator::kFarReplay).useful, 0u);
  EXPECT_EQ(rig.count(Actuator::kFarReplay).spurious, 2u);
  rig.peerSends(2, 3);
  EXPECT_EQ(rig.passUntilSpoken(1s), 1s);
}

// The host was suspended. The segment and both copies arrived, and a D-SACK reports each copy as
// useless.
TEST(ToReceiverTest, EachCopyThatWentForNothingIsCounted) {
  Rig rig;
  rig.open({});
  rig.peerSends(0, 1);
  rig.passUntilSpoken(1s);
  rig.takeToHost();
  rig.passUntilSpoken(1s);
  rig.takeToHost();
  const ActuatorCounts& replays = rig.count(Actuator::kFarReplay);
  ASSERT_EQ(replays.fired, 2u);
  rig.pass(2ms);
  rig.hostAcks(1);
  EXPECT_EQ(replays.useful, 1u);
  const SeqRange segment{{kPeerIsn + 1}, {kPeerIsn + 1001}};
  rig.hostAcks(1, {segment});
  EXPECT_EQ(replays.useful, 1u) << "the other copy may have been of use";
  EXPECT_EQ(replays.spurious, 1u);
  rig.hostAcks(1, {segment});
  EXPECT_EQ(replays.useful, 0u);
  EXPECT_EQ(replays.spurious, 2u);
  rig.hostAcks(1, {segment});
  EXPECT_EQ(replays.spurious, 2u) << "no more copies were sent";
}

TEST(ToReceiverTest, ADsackForWhatCountsAsSpuriousAlreadyIsNotCountedAgain) {
  Rig rig;
  rig.open({});
  rig.peerSends(0, 1);
  rig.passUntilSpoken(1s);
  rig.takeToHost();
  rig.pass(500us);
  rig.hostAcks(1);  // too soon for an answer to the copy
  EXPECT_EQ(rig.count(Actuator::kFarReplay).spurious, 1u);
  rig.hostAcks(1, {{{kPeerIsn + 1}, {kPeerIsn + 1001}}});
  EXPECT_EQ(rig.count(Actuator::kFarReplay).spurious, 1u);
  EXPECT_EQ(rig.count(Actuator::kFarReplay).useful, 0u);
}

TEST(ToReceiverTest, AClosedWindowIsNoLoss) {
  Rig rig;
  rig.open({});
  rig.peerSends(0, 1);
  rig.pass(2ms);
  rig.host({.seq = kHostIsn + 1, .ack = kPeerIsn + 1001, .window = 0});
  rig.peerSends(1, 2);
  EXPECT_EQ(rig.passUntilSpoken(1s), 1s);
}

TEST(ToReceiverTest, ReplaysAreNotEcnCapableAndKeepAMark) {
  for (auto [tos, expected] : {std::pair{2, Ecn::kNotEct}, {1, Ecn::kNotEct}, {3, Ecn::kCe}}) {
    Rig rig;
    rig.open({});
    (void)rig.peer(Rig::peerSeg(0), static_cast<uint8_t>(tos));
    rig.passUntilSpoken(1s);
    auto again = rig.takeToHost();
    ASSERT_EQ(again.size(), 1u);
    EXPECT_EQ(again[0].ip.ecn, expected);
    EXPECT_TRUE(test::v4ChecksumValid(again[0].bytes));
  }
}

TEST(ToReceiverTest, AFinAndUrgentDataAreReplayedAsTheyWere) {
  Rig rig;
  rig.open({});
  Seg s = Rig::peerSeg(0);
  s.flags |= TcpFields::kFin | TcpFields::kUrg | TcpFields::kPsh;
  test::Bytes original = test::packetOf(s, false);
  (void)rig.peerPacket(original);
  rig.passUntilSpoken(1s);
  auto again = rig.takeToHost();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].bytes, original);
  rig.host({.seq = kHostIsn + 1, .ack = kPeerIsn + 1002});
  EXPECT_EQ(rig.shim.cachedPackets(), 0u);
}

TEST(ToReceiverTest, OfLargeFlowsNothingIsKept) {
  AckShimOptions options;
  options.gamma = 5000;
  Rig rig(options);
  rig.open({});
  rig.peerSends(0, 5);
  rig.pass(2ms);
  rig.hostAcks(5);
  rig.peerSends(5, 6);
  EXPECT_EQ(rig.shim.cachedPackets(), 0u);
  EXPECT_EQ(rig.passUntilSpoken(1s), 1s);
}

TEST(ToReceiverTest, AFullCacheOnlyMeansNoHelp) {
  AckShimOptions options;
  options.cachePackets = 2;
  Rig rig(options);
  rig.open({});
  rig.peerSends(0, 5);
  EXPECT_EQ(rig.shim.cachedPackets(), 2u);
  EXPECT_EQ(rig.shim.counters().cacheFull, 3u);
}

}  // namespace
}  // namespace braid::to_receiver_test
