// Unusual connections and attackers, packet by packet.

#include <gtest/gtest.h>

#include <array>
#include <vector>

#include "base/random.h"
#include "tests/unit/ackshim/rig.h"

namespace braid::robustness_test {
namespace {

using test::kHostIsn;
using test::kPeerIsn;
using test::Rig;
using test::Seg;
using Verdict = AckShim::Verdict;
constexpr uint8_t kSyn = TcpFields::kSyn, kAck = TcpFields::kAck, kFin = TcpFields::kFin,
                  kRst = TcpFields::kRst;

/// The local sender waits for an ACK that will not arrive. The salvo of duplicate ACKs is due
/// within 110 ms.
void stall(Rig& rig, const Rig::Opening& opening = {.sack = false}) {
  rig.open(opening);
  rig.hostSends(0, 3);
}

TEST(ForgedTest, AcksThatDoNotFitNeitherSpeakNorSilenceNorMoveTheWindow) {
  Rig rig;
  stall(rig);
  for (uint32_t ack :
       {kHostIsn + 3002, kHostIsn + 1'000'000, kHostIsn - 500'000, 0x80000000u + kHostIsn}) {
    EXPECT_EQ(rig.peer({.seq = kPeerIsn + 1, .ack = ack, .window = 60000}), Verdict::kPass);
  }
  for (uint32_t seq : {kPeerIsn + 10'000'000, kPeerIsn - 10'000'000}) {
    EXPECT_EQ(rig.peer({.seq = seq, .ack = kHostIsn + 2001, .window = 60000}), Verdict::kPass);
  }
  EXPECT_EQ(rig.flow()->out.una, Seq{kHostIsn + 1});
  EXPECT_EQ(rig.flow()->out.window, 1000);
  EXPECT_EQ(rig.shim.counters().foreign, 6u);
  EXPECT_LE(rig.passUntilSpoken(1s), 110250us);
  auto said = rig.takeToHost();
  ASSERT_EQ(said.size(), 3u);
  EXPECT_EQ(said[0].ip.tcp->window, 7);
}

TEST(ForgedTest, OfAFlowThatIsNotThereMakeNothing) {
  Rig rig;
  for (uint32_t i = 0; i < 100; ++i) (void)rig.peer({.seq = i * 7919, .ack = i * 104729});
  EXPECT_EQ(rig.shim.counters().halfOpen, 0u);  // ACKs alone do not create a flow
  for (uint32_t i = 0; i < 100; ++i)
    (void)rig.peer({.seq = i * 7919, .ack = i * 104729, .length = 100});
  EXPECT_EQ(rig.shim.flows(), 0u);
  EXPECT_EQ(rig.passUntilSpoken(10s), 10s);
}

TEST(ForgedTest, DuplicatesOfAnIdleFlowSayNothing) {
  Rig rig;
  rig.open({.sack = false});
  rig.hostSends(0, 3);
  rig.pass(10ms);
  (void)rig.peerAcks(3);
  for (int i = 0; i < 100; ++i) (void)rig.peerAcks(3);
  EXPECT_EQ(rig.passUntilSpoken(10s), 10s);
}

// The salvo is limited for any number of duplicates, and none of these reaches the sender.
TEST(ForgedTest, AFloodOfDuplicatesInRecoveryInflatesNothing) {
  Rig rig;
  stall(rig);
  rig.passUntilSpoken(1s);
  EXPECT_EQ(rig.takeToHost().size(), 3u);
  const Seg again{.seq = kPeerIsn + 1, .ack = kHostIsn + 1, .window = 7};
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(rig.peer(again), Verdict::kDrop);
  EXPECT_TRUE(rig.takeToHost().empty());
}

TEST(ForgedTest, ASynNeitherEndsNorRestartsALiveFlow) {
  Rig rig;
  stall(rig);
  (void)rig.peer({.seq = 77, .flags = kSyn});
  rig.host({.seq = 99, .flags = kSyn});
  EXPECT_EQ(rig.flow()->out.una, Seq{kHostIsn + 1});
  EXPECT_LE(rig.passUntilSpoken(1s), 110250us);
  EXPECT_EQ(rig.takeToHost()[0].ack(), kHostIsn + 1);
}

TEST(ResetTest, OnlyTheNextNumberEndsTheFlow) {
  Rig rig;
  stall(rig);
  (void)rig.peer({.seq = kPeerIsn + 500'000, .flags = kRst});  // outside the window
  EXPECT_NE(rig.flow(), nullptr);
  EXPECT_FALSE(rig.flow()->resetSuspected);
  // inside the window: the host sends a challenge ACK
  (void)rig.peer({.seq = kPeerIsn + 500, .flags = kRst});
  ASSERT_NE(rig.flow(), nullptr);
  EXPECT_EQ(rig.passUntilSpoken(150ms), 150ms);
  (void)rig.peerAcks(1);  // and the peer continues
  EXPECT_LT(rig.passUntilSpoken(1s), 1s);
  rig.takeToHost();
  (void)rig.peer({.seq = kPeerIsn + 1, .flags = kRst});
  EXPECT_EQ(rig.flow(), nullptr);
  EXPECT_EQ(rig.passUntilSpoken(10s), 10s);
}

TEST(ConnectionTest, TheSequenceWrapsInBothDirections) {
  Rig rig;
  uint32_t isn = 0xfffffc00;
  test::Bytes options{2, 4, 5, 0xb4, 1, 3, 3, 7, 1, 1, 4, 2};
  rig.host({.seq = isn, .flags = kSyn, .options = options});
  rig.pass(10ms);
  (void)rig.peer({.seq = isn, .ack = isn + 1, .flags = kSyn | kAck, .options = options});
  rig.pass(2ms);
  rig.host({.seq = isn + 1, .ack = isn + 1});
  for (uint32_t i = 0; i < 3; ++i)
    rig.host({.seq = isn + 1 + i * 1000, .ack = isn + 1, .length = 1000});
  rig.pass(10ms);
  (void)rig.peer({.seq = isn + 1, .ack = isn + 1001});
  rig.passUntilSpoken(1s);
  auto said = rig.takeToHost();
  ASSERT_EQ(said.size(), 3u);
  EXPECT_EQ(said[0].ack(), isn + 1001);
  EXPECT_EQ(said[0].sacks(), (std::vector<SeqRange>{{{isn + 2001}, {isn + 3001}}}));
  for (uint32_t i = 0; i < 2; ++i)
    (void)rig.peer({.seq = isn + 1 + i * 1000, .ack = isn + 3001, .length = 1000});
  rig.passUntilSpoken(1s);
  EXPECT_EQ(rig.takeToHost()[0].seq(), isn + 1);
}

TEST(ConnectionTest, KeepalivesAreNotData) {
  Rig rig;
  rig.open({});
  rig.hostSends(0, 1);
  rig.pass(10ms);
  (void)rig.peerAcks(1);
  for (int i = 0; i < 5; ++i) {
    rig.host({.seq = kHostIsn + 1000, .ack = kPeerIsn + 1});
    rig.host({.seq = kHostIsn + 1000, .ack = kPeerIsn + 1, .length = 1});
    EXPECT_EQ(rig.peerAcks(1), Verdict::kPass);
    EXPECT_EQ(rig.peer({.seq = kPeerIsn, .ack = kHostIsn + 1001}), Verdict::kPass);
    EXPECT_EQ(rig.passUntilSpoken(20s), 20s);
  }
}

TEST(ConnectionTest, SimultaneousOpen) {
  Rig rig;
  rig.host({.seq = kHostIsn, .flags = kSyn});
  (void)rig.peer({.seq = kPeerIsn, .flags = kSyn});
  rig.host({.seq = kHostIsn, .ack = kPeerIsn + 1, .flags = kSyn | kAck});
  EXPECT_EQ(rig.shim.flows(), 0u);
  rig.pass(10ms);
  (void)rig.peer({.seq = kPeerIsn, .ack = kHostIsn + 1, .flags = kSyn | kAck});
  ASSERT_NE(rig.flow(), nullptr);
  EXPECT_EQ(rig.flow()->out.nxt, Seq{kHostIsn + 1});
  EXPECT_EQ(rig.flow()->in.nxt, Seq{kPeerIsn + 1});
}

TEST(ConnectionTest, HalfCloseGoesOnAndBothFinsEndTheFlow) {
  Rig rig;
  rig.open({.sack = false});
  rig.host({.seq = kHostIsn + 1, .ack = kPeerIsn + 1, .flags = kFin | kAck});
  rig.pass(10ms);
  (void)rig.peer({.seq = kPeerIsn + 1, .ack = kHostIsn + 2});
  ASSERT_NE(rig.flow(), nullptr);
  EXPECT_TRUE(rig.flow()->out.isFinished());
  (void)rig.peer({.seq = kPeerIsn + 1, .ack = kHostIsn + 2, .length = 1000});
  EXPECT_LE(rig.passUntilSpoken(1s), 15ms);
  EXPECT_EQ(rig.takeToHost()[0].seq(), kPeerIsn + 1);
  rig.host({.seq = kHostIsn + 2, .ack = kPeerIsn + 1001});
  (void)rig.peer({.seq = kPeerIsn + 1001, .ack = kHostIsn + 2, .flags = kFin | kAck});
  EXPECT_NE(rig.flow(), nullptr);
  rig.host({.seq = kHostIsn + 2, .ack = kPeerIsn + 1002});
  EXPECT_EQ(rig.flow(), nullptr);
  EXPECT_EQ(rig.shim.cachedPackets(), 0u);
}

// TCP Fast Open (RFC 7413): data on the SYN. The SYN-ACK acknowledges all of it or only the SYN.
TEST(ConnectionTest, FastOpen) {
  for (bool accepted : {true, false}) {
    Rig rig;
    rig.host({.seq = kHostIsn, .length = 500, .flags = kSyn});
    rig.pass(10ms);
    uint32_t ack = kHostIsn + 1 + (accepted ? 500 : 0);
    (void)rig.peer({.seq = kPeerIsn, .ack = ack, .flags = kSyn | kAck});
    rig.pass(2ms);
    rig.host({.seq = kHostIsn + 1 + (accepted ? 500u : 0u),
              .ack = kPeerIsn + 1,
              .length = accepted ? 0u : 500u});
    ASSERT_NE(rig.flow(), nullptr);
    EXPECT_EQ(rig.flow()->out.una, Seq{ack});
    EXPECT_EQ(rig.flow()->out.nxt, Seq{kHostIsn + 501});
  }
}

TEST(ConnectionTest, APortUsedAgainBeginsAnew) {
  Rig rig;
  rig.open({.sack = false});
  rig.hostSends(0, 1);
  rig.host({.seq = 90'000'000, .flags = kSyn});
  rig.pass(10ms);
  (void)rig.peer({.seq = 70'000'000, .ack = 90'000'001, .flags = kSyn | kAck});
  rig.host({.seq = 90'000'001, .ack = 70'000'001});
  ASSERT_NE(rig.flow(), nullptr);
  EXPECT_EQ(rig.flow()->out.una, Seq{90'000'001});
  EXPECT_EQ(rig.shim.flows(), 1u);
}

// A flow joined in the middle: the shim does not know whether SACK is used, so it sends pure
// duplicate ACKs, which any receiver may send.
TEST(ConnectionTest, JoinedInTheMiddleByDataAndItsAck) {
  Rig rig;
  rig.host(Rig::hostSeg(0));
  EXPECT_EQ(rig.shim.flows(), 0u);
  rig.pass(10ms);
  (void)rig.peerAcks(1);
  ASSERT_NE(rig.flow(), nullptr);
  EXPECT_FALSE(rig.flow()->sack);
  rig.hostSends(1, 4);
  rig.passUntilSpoken(1s);
  auto said = rig.takeToHost();
  ASSERT_EQ(said.size(), 3u);
  EXPECT_EQ(said[0].bytes.size(), 40u);
  EXPECT_EQ(said[0].ack(), kHostIsn + 1001);
}

// After packets that passed by another path, the continuation does not match the state, and the
// flow is joined again.
TEST(ConnectionTest, AFlowThatWentOnElsewhereIsJoinedAgain) {
  Rig rig;
  rig.open({});
  uint32_t far = kHostIsn + 50'000'000;
  rig.host({.seq = far, .ack = kPeerIsn + 1, .length = 1000});
  (void)rig.peer({.seq = kPeerIsn + 1, .ack = far + 1000});
  ASSERT_NE(rig.flow(), nullptr);
  EXPECT_EQ(rig.flow()->out.una, Seq{far + 1000});
  EXPECT_TRUE(rig.flow()->joined);
}

TEST(ConnectionTest, ForgottenWhenIdle) {
  Rig rig;
  rig.open({});
  rig.pass(119s);
  EXPECT_NE(rig.flow(), nullptr);
  rig.pass(2s);
  EXPECT_EQ(rig.flow(), nullptr);
  EXPECT_EQ(rig.shim.nextDeadline(), kNever);
}

TEST(FloodTest, SpoofedSynsAndDataCostNoLiveFlow) {
  AckShimOptions options;
  options.maxFlows = 8;
  options.maxHalfOpen = 16;
  Rig rig(options);
  rig.open({.sack = false});
  test::Bytes syn = test::packetOf({.seq = 1, .flags = kSyn}, false);
  test::Bytes data = test::packetOf({.seq = 1, .ack = 5, .length = 10}, false);
  for (uint32_t i = 0; i < 50'000; ++i) {
    store32(&syn[12], 0x0b000000 + i);
    (void)rig.peerPacket(syn);
    store32(&data[12], 0x0c000000 + i);
    (void)rig.peerPacket(data);
    // The local host answers something that it takes for a connection.
    test::Bytes answer = test::packetOf({.seq = i, .ack = 2, .flags = kSyn | kAck}, true);
    store32(&answer[16], 0x0b000000 + i);
    rig.hostPacket(answer);
  }
  EXPECT_EQ(rig.shim.flows(), 1u);
  EXPECT_EQ(rig.shim.counters().halfOpen, 100'001u);
  rig.hostSends(0, 3);
  EXPECT_LE(rig.passUntilSpoken(1s), 110250us);
  EXPECT_EQ(rig.takeToHost().size(), 3u);
}

TEST(FloodTest, AFullTableGivesUpQuietFlowsOnly) {
  AckShimOptions options;
  options.maxFlows = 2;
  Rig rig(options);
  auto openAt = [&](uint16_t port) {
    auto send = [&rig, port](const Seg& s, bool fromHost) {
      test::Bytes b = test::packetOf(s, fromHost, false, 0, port);
      fromHost ? rig.hostPacket(b) : (void)rig.peerPacket(b);
    };
    send({.seq = 10, .flags = kSyn}, true);
    send({.seq = 20, .ack = 11, .flags = kSyn | kAck}, false);
    send({.seq = 11, .ack = 21}, true);
    send({.seq = 11, .ack = 21, .length = 100}, true);
    return [send] { send({.seq = 21, .ack = 111}, false); };
  };
  openAt(1);
  auto acknowledge = openAt(2);
  rig.pass(2s);
  openAt(3);
  uint64_t refused = rig.shim.counters().tableFull;
  EXPECT_GT(refused, 0u);  // both have data outstanding
  acknowledge();
  rig.pass(1s);
  openAt(4);
  EXPECT_EQ(rig.shim.counters().tableFull, refused);
  EXPECT_EQ(rig.shim.flows(), 2u);
}

TEST(RuleTest, TheFirstThatFitsDecides) {
  AckShimOptions options;
  options.rules.push_back({Prefix::parse("10.0.0.2/32").value(), 5000, 5000, true});
  options.rules.push_back({});
  Rig on(options);
  on.open({});
  EXPECT_NE(on.flow(), nullptr);
  options.rules[0].firstPort = options.rules[0].lastPort = 5001;
  Rig off(options);
  off.open({});
  off.hostSends(0, 3);
  EXPECT_EQ(off.flow(), nullptr);
  EXPECT_EQ(off.passUntilSpoken(1s), 1s);
}

TEST(OtherPacketsTest, PassUnseen) {
  Rig rig;
  test::Bytes udp = test::v4({}, test::udp(1, 2, test::pattern(20)));
  rig.hostPacket(udp);
  EXPECT_EQ(rig.peerPacket(udp), Verdict::kPass);
  EXPECT_EQ(rig.shim.counters().halfOpen, 0u);
}

TEST(PoolTest, WithoutBuffersNothingIsSaid) {
  PacketPool none(2000, 0);
  AckShim shim({}, none, nullptr, {1, 2});
  auto give = [&](const Seg& s, bool fromHost, Time now) {
    test::Bytes b = test::packetOf(s, fromHost);
    InnerPacket p = parseInnerPacket(b).value();
    fromHost ? shim.onFromHost(b, p, now) : (void)shim.onToHost(b, p, now);
  };
  give({.seq = 10, .flags = kSyn}, true, Time(1s));
  give({.seq = 20, .ack = 11, .flags = kSyn | kAck}, false, Time(1s + 10ms));
  give({.seq = 11, .ack = 21}, true, Time(1s + 10ms));
  give({.seq = 11, .ack = 21, .length = 100}, true, Time(1s + 10ms));
  for (int i = 0; i < 1000; ++i) shim.onTimer(Time(1s + 10ms + i * 1ms));
  EXPECT_FALSE(shim.pollToHost());
  EXPECT_GT(shim.counters().noBuffer, 0u);
}

}  // namespace
}  // namespace braid::robustness_test
