// The ACKs that the shim sends to a local sender, and when. Unless a test sets it, the RTT of the
// whole path is 10 ms, so beta = 10 RTT + rand(RTT) lies in [100, 110) ms. A tick of the timer
// wheel is 0.25 ms.

#include <gtest/gtest.h>

#include "tests/unit/ackshim/rig.h"

namespace braid::to_sender_test {
namespace {

using test::kHostIsn;
using test::kPeerIsn;
using test::Rig;
using test::Seg;
using Verdict = AckShim::Verdict;

/// Ten segments, of which the peer acknowledges seven.
void loseTheLastThree(Rig& rig, const Rig::Opening& opening) {
  rig.open(opening);
  rig.hostSends(0, 10);
  rig.pass(10ms);
  EXPECT_EQ(rig.peerAcks(7), Verdict::kPass);
}

TEST(ToSenderTest, DuplicateAcksThatSackTheLastSegmentAfterBeta) {
  Rig rig;
  loseTheLastThree(rig, {});
  Duration waited = rig.passUntilSpoken(1s);
  EXPECT_GE(waited, 100ms);
  EXPECT_LE(waited, 110250us);
  auto said = rig.takeToHost();
  ASSERT_EQ(said.size(), 3u);
  for (const auto& e : said) {
    EXPECT_EQ(e.ack(), kHostIsn + 1 + 7000);  // never more than the receiver acknowledged
    EXPECT_EQ(e.seq(), kPeerIsn + 1);
    EXPECT_EQ(e.ip.tcp->window, 1000);
    EXPECT_EQ(e.ip.tcp->flags, TcpFields::kAck);
    EXPECT_EQ(e.ip.payloadLength, 0u);
    EXPECT_EQ(e.sacks(), std::vector<SeqRange>{Rig::hostRange(9, 10)});
    EXPECT_TRUE(test::transportChecksumValid(e.bytes));
    EXPECT_TRUE(test::v4ChecksumValid(e.bytes));
  }
  rig.host(Rig::hostSeg(7));
  rig.pass(10ms);
  (void)rig.peerAcks(10);
  const ActuatorCounts& c = rig.count(Actuator::kSackDupAck);
  EXPECT_EQ(c.fired, 1u);
  EXPECT_EQ(c.useful, 1u);
  EXPECT_EQ(c.spurious, 0u);
}

// The window of a SYN is not scaled (RFC 7323 section 2.2), the one of the spoofed ACKs is. With
// another value the first of them would be a window update, and announce more than there is.
TEST(ToSenderTest, TheWindowOfTheSynAckIsScaled) {
  for (auto [inSyn, later] : {std::pair(64'000, 500), {1000, 7}, {100, 1}}) {
    Rig rig;
    rig.synWindow = static_cast<uint16_t>(inSyn);
    rig.open({.sack = false});
    rig.hostSends(0, 10);
    rig.passUntilSpoken(1s);
    auto said = rig.takeToHost();
    ASSERT_EQ(said.size(), 3u);
    for (const auto& e : said) EXPECT_EQ(e.ip.tcp->window, later);
  }
}

TEST(ToSenderTest, PureDuplicatesWithoutSack) {
  Rig rig;
  loseTheLastThree(rig, {.sack = false});
  rig.passUntilSpoken(1s);
  auto said = rig.takeToHost();
  ASSERT_EQ(said.size(), 3u);
  EXPECT_EQ(said[0].bytes.size(), 40u);
  EXPECT_EQ(rig.count(Actuator::kPureDupAck).fired, 1u);
}

TEST(ToSenderTest, AsManyAsAreMissingToPhi) {
  Rig rig;
  loseTheLastThree(rig, {.sack = false});
  (void)rig.peerAcks(7);
  (void)rig.peerAcks(7);
  rig.passUntilSpoken(1s);
  EXPECT_EQ(rig.takeToHost().size(), 1u);
}

// RTT 1 ms: beta in [10, 11). The salvo at beta, one more at 5, 9 and 17 beta (at most 187 ms); the
// next would be at 33 beta, after the stop at 200 ms.
TEST(ToSenderTest, BacksOffAndStopsNearTheMinimumRto) {
  Rig rig;
  rig.open({.sack = false, .rtt = 1ms});
  rig.hostSends(0, 3);
  Time sent = rig.now;
  std::vector<Duration> times;
  while (rig.passUntilSpoken(3s) < 3s) {
    for (size_t n = rig.takeToHost().size(); n > 0; --n) times.push_back(rig.now - sent);
  }
  ASSERT_EQ(times.size(), 6u);
  Duration beta = times[0];
  EXPECT_EQ(times[2], beta);
  EXPECT_NEAR(toMilliseconds(times[3]), toMilliseconds(5 * beta), 1.5);
  EXPECT_NEAR(toMilliseconds(times[4]), toMilliseconds(9 * beta), 2.5);
  EXPECT_NEAR(toMilliseconds(times[5]), toMilliseconds(17 * beta), 4.5);
  EXPECT_LT(times[5], 200ms);
  EXPECT_EQ(rig.count(Actuator::kPureDupAck).fired, 1u);  // one attempt, six packets
}

TEST(ToSenderTest, TimestampsWindowAndIpFieldsOfTheLastRealAck) {
  for (bool v6 : {false, true}) {
    Rig rig;
    rig.v6 = v6;
    rig.open({.timestamps = true});
    for (uint32_t i = 0; i < 3; ++i) {
      Seg s = Rig::hostSeg(i);
      s.ts = {110, 700};
      rig.host(s);
    }
    rig.pass(10ms);
    Seg ack{
        .seq = kPeerIsn + 1, .ack = kHostIsn + 1001, .window = 321, .ts = TcpTimestamps{715, 110}};
    test::Bytes real = test::packetOf(ack, false, v6, 0xb8 | 1);  // DSCP 46, ECT(1)
    (void)rig.peerPacket(real);
    rig.passUntilSpoken(1s);
    auto said = rig.takeToHost();
    ASSERT_EQ(said.size(), 3u);
    EXPECT_EQ(said[0].options.timestamps, (TcpTimestamps{715, 110}));
    EXPECT_EQ(said[0].ip.tcp->window, 321);
    EXPECT_EQ(said[0].ip.dscp, 46);
    EXPECT_EQ(said[0].ip.ecn, Ecn::kNotEct);
    EXPECT_EQ(said[0].ip.hopLimit, parseInnerPacket(real)->hopLimit);
    if (v6) {
      EXPECT_EQ(load32(said[0].bytes.data()) & 0xfffff, 0xabcdeu);
    }
    EXPECT_TRUE(test::transportChecksumValid(said[0].bytes));
  }
}

TEST(ToSenderTest, OnlyWithDataOutstanding) {
  Rig rig;
  rig.open({});
  rig.hostSends(0, 3);
  rig.pass(10ms);
  (void)rig.peerAcks(3);
  EXPECT_EQ(rig.passUntilSpoken(10s), 10s);
}

TEST(ToSenderTest, SilentWhileTheTunnelCarriesAndARoundTripLonger) {
  Rig rig;
  loseTheLastThree(rig, {});
  rig.carrying = true;
  EXPECT_EQ(rig.passUntilSpoken(150ms), 150ms);
  EXPECT_GT(rig.shim.counters().silent, 0u);
  rig.carrying = false;
  Duration waited = rig.passUntilSpoken(1s);
  EXPECT_GE(waited, 10ms);
  EXPECT_LE(waited, 21ms);
}

// A repair by the tunnel arrives just before beta has passed. Its ACK is in flight.
TEST(ToSenderTest, SilentForARoundTripAfterTheTunnelDeliveredUnseen) {
  for (Duration until = 80ms; until <= 105ms; until += 1ms) {
    Rig rig;
    loseTheLastThree(rig, {});
    rig.carrying = true;
    Duration waited = rig.passUntilSpoken(until);
    ASSERT_EQ(waited, until);
    rig.carrying = false;
    ASSERT_GE(rig.passUntilSpoken(1s), 9ms) << until / 1ms;
  }
}

TEST(ToSenderTest, AZeroWindowIsNoLoss) {
  Rig rig;
  rig.open({});
  rig.hostSends(0, 3);
  rig.pass(10ms);
  (void)rig.peer({.seq = kPeerIsn + 1, .ack = kHostIsn + 1001, .window = 0});
  EXPECT_EQ(rig.passUntilSpoken(1s), 1s);
  rig.host({.seq = kHostIsn + 3001, .ack = kPeerIsn + 1, .length = 1});  // a window probe
  (void)rig.peer({.seq = kPeerIsn + 1, .ack = kHostIsn + 1001, .window = 0});
  EXPECT_EQ(rig.passUntilSpoken(1s), 1s);
  EXPECT_EQ(rig.shim.counters().acksDropped, 0u);
}

TEST(ToSenderTest, LargeFlowsAreLeftAlone) {
  AckShimOptions options;
  options.gamma = 5000;
  Rig rig(options);
  loseTheLastThree(rig, {});  // 7000 bytes acknowledged
  EXPECT_TRUE(rig.flow()->out.large);
  EXPECT_EQ(rig.passUntilSpoken(5s), 5s);
}

// The ACK of the fifth segment reaches gamma exactly.
TEST(ToSenderTest, LargeFromGammaBytesAcknowledgedOn) {
  AckShimOptions options;
  options.gamma = 5000;
  Rig rig(options);
  rig.open({});
  rig.hostSends(0, 10);
  rig.pass(10ms);
  (void)rig.peerAcks(4);
  EXPECT_FALSE(rig.flow()->out.large);
  (void)rig.peerAcks(5);
  EXPECT_TRUE(rig.flow()->out.large);
}

// The flow is silent for a second, then its sender's timer fires. The flow is small again, and its
// old state is gone.
TEST(ToSenderTest, HardResetAfterASecondOfSilence) {
  AckShimOptions options;
  options.gamma = 5000;
  Rig rig(options);
  loseTheLastThree(rig, {.sack = false});  // 7000 bytes acknowledged
  (void)rig.peerAcks(7);
  rig.pass(1s);
  EXPECT_TRUE(rig.takeToHost().empty());
  rig.host(Rig::hostSeg(7));
  EXPECT_FALSE(rig.flow()->out.large);
  Duration waited = rig.passUntilSpoken(1s);
  EXPECT_GE(waited, 100ms);
  EXPECT_LE(waited, 110250us);
  EXPECT_EQ(rig.takeToHost().size(), 3u);  // the earlier duplicate does not count
}

TEST(ToSenderTest, SoftResetEndsTheDroppingOfDuplicates) {
  Rig rig;
  loseTheLastThree(rig, {.sack = false});
  rig.passUntilSpoken(1s);
  EXPECT_EQ(rig.peerAcks(7), Verdict::kDrop);
  rig.pass(100ms);  // more than 200 ms after the last new ACK
  EXPECT_EQ(rig.peerAcks(7), Verdict::kPass);
}

TEST(ToSenderTest, InRecoveryDuplicatesThatSayNothingAreDropped) {
  Rig rig;
  loseTheLastThree(rig, {.sack = false});
  EXPECT_EQ(rig.peerAcks(7), Verdict::kPass);  // not yet
  rig.passUntilSpoken(1s);
  EXPECT_EQ(rig.peerAcks(7), Verdict::kDrop);
  EXPECT_EQ(rig.peerAcks(7), Verdict::kDrop);
  uint32_t ack = kHostIsn + 1 + 7000;
  EXPECT_EQ(rig.peer({.seq = kPeerIsn + 1, .ack = ack, .window = 999}),
            Verdict::kPass);  // a window update
  EXPECT_EQ(rig.peer({.seq = kPeerIsn + 1,
                      .ack = ack,
                      .flags = TcpFields::kAck | TcpFields::kEce,
                      .window = 999}),
            Verdict::kPass);
  EXPECT_EQ(
      rig.peer({.seq = kPeerIsn + 1, .ack = ack, .window = 999, .sacks = {Rig::hostRange(8, 9)}}),
      Verdict::kPass);
  EXPECT_EQ(rig.peer({.seq = kPeerIsn, .ack = ack, .window = 999}), Verdict::kPass);  // a keepalive
  EXPECT_EQ(rig.peer({.seq = kPeerIsn + 1, .ack = ack, .length = 10, .window = 999}),
            Verdict::kPass);
  EXPECT_EQ(rig.peerAcks(10), Verdict::kPass);
  EXPECT_EQ(rig.shim.counters().acksDropped, 2u);
}

TEST(ToSenderTest, NothingWakesTheSenderOfOneSegment) {
  Rig rig;
  rig.open({});
  rig.hostSends(0, 1);
  EXPECT_EQ(rig.passUntilSpoken(5s), 5s);
  EXPECT_GT(rig.shim.counters().helpless, 0u);
}

TEST(ToSenderTest, ThePapersGapOnRequest) {
  AckShimOptions options;
  options.sackGap = true;
  Rig rig(options);
  rig.open({});
  rig.hostSends(0, 1);
  rig.passUntilSpoken(1s);
  auto said = rig.takeToHost();
  ASSERT_EQ(said.size(), 3u);
  EXPECT_EQ(said[0].sacks(), (std::vector<SeqRange>{{{kHostIsn + 41}, {kHostIsn + 1001}}}));
}

TEST(ToSenderTest, AKeptSegmentGoesIntoTheTunnelAgain) {
  AckShimOptions options;
  options.cacheOutgoing = true;
  Rig rig(options);
  rig.open({});
  test::Bytes original = test::packetOf(Rig::hostSeg(0), true);
  rig.hostPacket(original);
  Duration waited = rig.passUntilSpoken(1s);
  EXPECT_GE(waited, 100ms);
  EXPECT_LE(waited, 110250us);
  auto again = rig.takeToPeer();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].bytes, original);
  rig.pass(10ms);
  (void)rig.peerAcks(1);
  EXPECT_EQ(rig.count(Actuator::kNearReplay).useful, 1u);
  EXPECT_EQ(rig.shim.cachedPackets(), 0u);
}

// ---- what the sender has sent again

// A sender in recovery ignores further duplicate ACKs (RFC 6582). So the shim itself resends a
// retransmission that was lost again.
TEST(SentAgainTest, GoesIntoTheTunnelOnceMoreAfterBeta) {
  Rig rig;
  loseTheLastThree(rig, {.sack = false});
  rig.passUntilSpoken(1s);
  EXPECT_EQ(rig.takeToHost().size(), 3u);
  test::Bytes repair = test::packetOf(Rig::hostSeg(7), true);
  rig.hostPacket(repair);
  Duration waited = rig.passUntilSpoken(1s);
  EXPECT_GE(waited, 100ms);
  EXPECT_LE(waited, 110500us);
  auto sent = rig.takeToPeer();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].bytes, repair);
  EXPECT_EQ(rig.takeToHost().size(), 0u);
  EXPECT_EQ(rig.shim.cachedPackets(), 1u);
  rig.pass(10ms);
  (void)rig.peerAcks(8);
  EXPECT_EQ(rig.count(Actuator::kNearReplay).useful, 1u);
  EXPECT_EQ(rig.shim.cachedPackets(), 0u);
  rig.passUntilSpoken(1s);  // the sender repairs the next gap itself
  EXPECT_EQ(rig.takeToHost().size(), 3u);
}

TEST(SentAgainTest, AlsoWhenTheReceiversOwnDuplicatesHadMadeItDoSo) {
  Rig rig;
  rig.open({.sack = false});
  rig.hostSends(0, 5);
  rig.pass(10ms);
  for (int i = 0; i < 4; ++i) (void)rig.peerAcks(1);  // 2, 3 and 4 arrived behind the gap
  rig.hostSends(1, 2);
  rig.passUntilSpoken(1s);
  EXPECT_EQ(rig.takeToHost().size(), 0u);
  auto sent = rig.takeToPeer();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].seq(), kHostIsn + 1 + 1000);
}

TEST(SentAgainTest, NotWhileTheTunnelCarriesIt) {
  Rig rig;
  loseTheLastThree(rig, {.sack = false});
  rig.passUntilSpoken(1s);
  rig.takeToHost();
  rig.hostSends(7, 8);
  rig.carrying = true;
  EXPECT_EQ(rig.passUntilSpoken(1s), 1s);
}

TEST(SentAgainTest, WithoutReplaysDuplicatesAsInThePaper) {
  AckShimOptions options;
  options.replay = false;
  Rig rig(options);
  loseTheLastThree(rig, {.sack = false});
  rig.passUntilSpoken(1s);
  rig.takeToHost();
  rig.hostSends(7, 8);
  rig.passUntilSpoken(1s);
  EXPECT_EQ(rig.takeToHost().size(), 3u);
  EXPECT_EQ(rig.takeToPeer().size(), 0u);
  EXPECT_EQ(rig.shim.cachedPackets(), 0u);
}

// ---- holes on the way in

TEST(HoleTest, ToldAfterTheAllowanceWithAllThatCame) {
  Rig rig;
  rig.open({});
  rig.hostSends(0, 2);
  rig.hostSends(3, 5);
  Duration waited = rig.passUntilSpoken(1s);
  EXPECT_GE(waited, 1ms);
  EXPECT_LE(waited, 1500us);
  auto said = rig.takeToHost();
  ASSERT_EQ(said.size(), 3u);
  EXPECT_EQ(said[0].ack(), kHostIsn + 1);
  EXPECT_EQ(said[0].sacks(), (std::vector<SeqRange>{Rig::hostRange(3, 5), Rig::hostRange(1, 2)}));
  rig.host(Rig::hostSeg(2));
  EXPECT_FALSE(rig.flow()->hasGap);
  rig.pass(5ms);
  EXPECT_TRUE(rig.takeToHost().empty());
  EXPECT_EQ(rig.count(Actuator::kHole).fired, 1u);
}

TEST(HoleTest, ReorderingIsNoHole) {
  Rig rig;
  rig.open({});
  rig.hostSends(0, 1);
  rig.hostSends(2, 3);
  rig.pass(900us);
  rig.hostSends(1, 2);
  EXPECT_EQ(rig.passUntilSpoken(90ms), 90ms);
}

TEST(HoleTest, TheAllowanceIsAQuarterOfTheLegIfThatIsMore) {
  Rig rig;
  rig.open({.leg = 40ms});
  rig.hostSends(0, 1);
  rig.hostSends(2, 3);
  Duration waited = rig.passUntilSpoken(1s);
  EXPECT_GE(waited, 10ms);
  EXPECT_LE(waited, 10500us);
}

TEST(HoleTest, WithoutSackTheAckMustComeToTheHole) {
  Rig rig;
  rig.open({.sack = false});
  rig.hostSends(0, 1);
  rig.hostSends(2, 3);
  EXPECT_EQ(rig.passUntilSpoken(10ms), 10ms);
  (void)rig.peerAcks(1);
  EXPECT_LE(rig.passUntilSpoken(1s), 500us);
  auto said = rig.takeToHost();
  ASSERT_EQ(said.size(), 3u);
  EXPECT_EQ(said[0].ack(), kHostIsn + 1001);
  EXPECT_EQ(said[0].bytes.size(), 40u);
}

// ---- what the tunnel dropped

TEST(TunnelDropTest, ToldAtOnceWhenMoreIsInFlight) {
  Rig rig;
  rig.open({});
  rig.hostSends(0, 4);
  rig.tunnelDrops(Rig::hostSeg(0));
  EXPECT_LE(rig.passUntilSpoken(1s), 500us);
  auto said = rig.takeToHost();
  ASSERT_EQ(said.size(), 3u);
  EXPECT_EQ(said[0].sacks(), std::vector<SeqRange>{Rig::hostRange(1, 4)});
  EXPECT_EQ(rig.shim.cachedPackets(), 0u);
}

TEST(TunnelDropTest, TheLastSegmentGoesAgainAfterARoundTrip) {
  Rig rig;
  rig.open({});
  rig.hostSends(0, 2);
  rig.tunnelDrops(Rig::hostSeg(1));
  EXPECT_EQ(rig.passUntilSpoken(9ms), 9ms);
  (void)rig.peerAcks(1);
  EXPECT_LE(rig.passUntilSpoken(1s), 2ms);
  EXPECT_TRUE(rig.takeToHost().empty());
  auto again = rig.takeToPeer();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].bytes, test::packetOf(Rig::hostSeg(1), true));
  EXPECT_EQ(rig.shim.cachedPackets(), 0u);
  rig.pass(10ms);
  (void)rig.peerAcks(2);
  EXPECT_EQ(rig.count(Actuator::kNearReplay).useful, 1u);
}

TEST(TunnelDropTest, OfWhatIsAcknowledgedOrUnknownIsNothing) {
  Rig rig;
  rig.tunnelDrops(Rig::hostSeg(0));
  rig.open({});
  rig.hostSends(0, 2);
  rig.pass(10ms);
  (void)rig.peerAcks(2);
  rig.tunnelDrops(Rig::hostSeg(0));
  rig.tunnelDrops(Rig::hostSeg(7));
  EXPECT_EQ(rig.passUntilSpoken(1s), 1s);
}

// ---- verdicts on what was said

TEST(TrialTest, ADsackShowsThatItWasNotNeeded) {
  Rig rig;
  loseTheLastThree(rig, {});
  rig.passUntilSpoken(1s);
  rig.host(Rig::hostSeg(7));
  rig.pass(10ms);
  (void)rig.peerAcks(10);
  EXPECT_EQ(rig.count(Actuator::kSackDupAck).useful, 1u);
  (void)rig.peerAcks(10, {Rig::hostRange(7, 8)});
  EXPECT_EQ(rig.count(Actuator::kSackDupAck).useful, 0u);
  EXPECT_EQ(rig.count(Actuator::kSackDupAck).spurious, 1u);
}

TEST(TrialTest, AnAckWithoutARetransmissionShowsIt) {
  Rig rig;
  loseTheLastThree(rig, {});
  rig.passUntilSpoken(1s);
  (void)rig.peerAcks(10);
  EXPECT_EQ(rig.count(Actuator::kSackDupAck).spurious, 1u);
}

TEST(TrialTest, ATimestampFromBeforeTheRetransmissionShowsIt) {
  Rig rig;
  rig.open({.timestamps = true});
  Seg s = Rig::hostSeg(0);
  for (uint32_t i = 0; i < 3; ++i) {
    s = Rig::hostSeg(i);
    s.ts = {110, 700};
    rig.host(s);
  }
  rig.passUntilSpoken(1s);
  s = Rig::hostSeg(0);
  s.ts = {220, 700};
  rig.host(s);
  (void)rig.peer({.seq = kPeerIsn + 1, .ack = kHostIsn + 3001, .ts = TcpTimestamps{800, 110}});
  EXPECT_EQ(rig.count(Actuator::kSackDupAck).spurious, 1u);
}

}  // namespace
}  // namespace braid::to_sender_test
