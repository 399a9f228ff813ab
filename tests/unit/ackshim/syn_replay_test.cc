// SYNs and SYN-ACKs that a local host does not answer. The RTT between gateway and host (the leg)
// is 2 ms, its variation 1 ms after one sample. So the shim waits for an answer for max(2 + 4 * 1,
// 2 * 2) + 3 = 9 ms.

#include <gtest/gtest.h>

#include "tests/unit/ackshim/rig.h"

namespace braid::syn_replay_test {
namespace {

using test::Bytes;
using test::kHostIsn;
using test::kPeerIsn;
using test::Rig;
using test::Seg;

constexpr uint8_t kSyn = TcpFields::kSyn, kAck = TcpFields::kAck, kRst = TcpFields::kRst;
constexpr uint16_t kPort = 444;  // the local host's port of the second connection

class SynReplayTest : public ::testing::Test {
 protected:
  void know(const AckShimOptions& options = {}) {
    rig_ = std::make_unique<Rig>(options);
    rig_->v6 = v6_;
    rig_->open({.byPeer = true});
  }
  Bytes packet(const Seg& s, bool fromHost, uint16_t port = kPort) {
    return test::packetOf(s, fromHost, v6_, 0, port);
  }
  void toHost(const Seg& s, uint16_t port = kPort) {
    (void)rig_->peerPacket(packet(s, false, port));
  }
  void fromHost(const Seg& s) { rig_->hostPacket(packet(s, true)); }
  const ShimFlow* flow() {
    Bytes b = packet({}, true);
    return rig_->shim.find(parseInnerPacket(b)->flowKey());
  }
  const ActuatorCounts& counts() { return rig_->count(Actuator::kSynReplay); }

  const Seg syn_{.seq = kPeerIsn, .flags = kSyn, .options = {2, 4, 5, 0xb4}};
  const Seg synAck_{
      .seq = kHostIsn, .ack = kPeerIsn + 1, .flags = kSyn | kAck, .options = {2, 4, 5, 0xb4}};
  const Seg third_{.seq = kPeerIsn + 1, .ack = kHostIsn + 1};
  bool v6_ = false;
  std::unique_ptr<Rig> rig_;
};

TEST_F(SynReplayTest, GoesAgainWhenTheLegsTimeIsOver) {
  for (bool v6 : {false, true}) {
    v6_ = v6;
    know();
    toHost(syn_);
    Duration waited = rig_->passUntilSpoken(1s);
    EXPECT_GE(waited, 9ms);
    EXPECT_LE(waited, 9500us);
    auto again = rig_->takeToHost();
    ASSERT_EQ(again.size(), 1u);
    EXPECT_EQ(again[0].bytes, packet(syn_, false));
    rig_->pass(2ms);
    fromHost(synAck_);
    rig_->pass(10ms);
    toHost(third_);
    EXPECT_EQ(rig_->passUntilSpoken(2s), 2s);
    EXPECT_EQ(counts().fired, 1u);
    EXPECT_EQ(counts().useful, 1u);
  }
}

TEST_F(SynReplayTest, WaitsDoubleUntilTheSendersOwnTimerHelps) {
  know();
  toHost(syn_);
  Duration last = rig_->passUntilSpoken(1s);
  (void)rig_->takeToHost();
  size_t replays = 1;
  for (Duration waited; (waited = rig_->passUntilSpoken(5s)) < 5s; last = waited, ++replays) {
    EXPECT_EQ(rig_->takeToHost().size(), 1u);
    EXPECT_GE(waited, 2 * last - 1ms);
    EXPECT_LE(waited, 2 * last + 1ms);
  }
  EXPECT_EQ(replays, SynReplay::kMaxReplays);
  EXPECT_EQ(counts().fired, replays);
  EXPECT_EQ(counts().useful, 0u);
}

TEST_F(SynReplayTest, TheSynAckToALocalClientAsWell) {
  know();
  Seg syn{.seq = kHostIsn, .flags = kSyn, .options = {2, 4, 5, 0xb4}};
  fromHost(syn);
  rig_->pass(10ms);
  Seg synAck{
      .seq = kPeerIsn, .ack = kHostIsn + 1, .flags = kSyn | kAck, .options = {2, 4, 5, 0xb4}};
  toHost(synAck);
  EXPECT_LE(rig_->passUntilSpoken(1s), 9500us);
  auto again = rig_->takeToHost();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].bytes, packet(synAck, false));
  rig_->pass(2ms);
  fromHost({.seq = kHostIsn + 1, .ack = kPeerIsn + 1});
  EXPECT_EQ(rig_->passUntilSpoken(2s), 2s);
  ASSERT_NE(flow(), nullptr);
}

TEST_F(SynReplayTest, AHostThatWasNeverHeardOfGetsNothingTwice) {
  rig_ = std::make_unique<Rig>();
  toHost(syn_);
  EXPECT_EQ(rig_->passUntilSpoken(2s), 2s);
}

TEST_F(SynReplayTest, AnAnswerInTimeEndsIt) {
  for (uint8_t flags : {uint8_t{kSyn | kAck}, uint8_t{kRst | kAck}, kRst}) {
    know();
    toHost(syn_);
    rig_->pass(2ms);
    fromHost({.seq = kHostIsn, .ack = kPeerIsn + 1, .flags = flags});
    rig_->pass(10ms);
    if (flags & kSyn) toHost(third_);
    EXPECT_EQ(rig_->passUntilSpoken(2s), 2s);
    EXPECT_EQ(counts().fired, 0u);
  }
}

TEST_F(SynReplayTest, AnAnswerRightAfterTheReplayWasToTheFirst) {
  know();
  toHost(syn_);
  rig_->passUntilSpoken(1s);
  rig_->pass(500us);
  fromHost(synAck_);
  EXPECT_EQ(counts().spurious, 1u);
  EXPECT_EQ(counts().useful, 0u);
}

// The SYN-ACK answers one of two SYNs, so it gives no RTT sample. The leg's RTT is known from other
// connections, which helps the only segment of this flow.
TEST_F(SynReplayTest, TheLegIsRecalledAndNotMeasured) {
  know();
  toHost(syn_);
  rig_->passUntilSpoken(1s);
  (void)rig_->takeToHost();
  rig_->pass(2ms);
  fromHost(synAck_);
  rig_->pass(10ms);
  toHost({.seq = kPeerIsn + 1, .ack = kHostIsn + 1});
  ASSERT_NE(flow(), nullptr);
  EXPECT_EQ(flow()->in.rtt.smoothed(), 2ms);
  toHost({.seq = kPeerIsn + 1, .ack = kHostIsn + 1, .length = 500});
  EXPECT_LE(rig_->passUntilSpoken(1s), 10ms);
  EXPECT_EQ(rig_->takeToHost().size(), 1u);
}

TEST_F(SynReplayTest, AFloodIsNotAmplified) {
  know();
  size_t replays = 0;
  for (uint32_t n = 0; n < 60'000; ++n) {
    toHost(syn_, static_cast<uint16_t>(1000 + n));
    rig_->pass(16us);  // one second in total
    replays += rig_->takeToHost().size();
  }
  EXPECT_GT(replays, 0u);
  EXPECT_LE(replays, SynReplay::kPlaces * SynReplay::kMaxReplays);
}

TEST_F(SynReplayTest, NoneOfALiveConnection) {
  know();
  Seg forged = syn_;
  forged.seq = 77;
  toHost(forged, 443);
  EXPECT_EQ(rig_->passUntilSpoken(2s), 2s);
  EXPECT_NE(rig_->flow(), nullptr);
}

TEST_F(SynReplayTest, OnlyWhereReplaysAreWanted) {
  AckShimOptions off;
  off.replay = false;
  AckShimOptions excluded;
  excluded.rules.push_back({.prefix = {}, .firstPort = kPort, .lastPort = kPort, .enabled = false});
  for (const AckShimOptions& options : {off, excluded}) {
    know(options);
    toHost(syn_);
    EXPECT_EQ(rig_->passUntilSpoken(2s), 2s);
  }
}

TEST_F(SynReplayTest, DataWithTheSynAreNotKept) {
  know();
  Seg fast = syn_;
  fast.length = 40;  // TCP Fast Open
  toHost(fast);
  EXPECT_EQ(rig_->passUntilSpoken(2s), 2s);
}

TEST_F(SynReplayTest, TheSendersResetEndsIt) {
  know();
  toHost(syn_);
  toHost({.seq = kPeerIsn + 1, .flags = kRst});
  EXPECT_EQ(rig_->passUntilSpoken(2s), 2s);
}

TEST_F(SynReplayTest, AnotherAttemptTakesThePlaceOfTheFirst) {
  know();
  toHost(syn_);
  rig_->pass(5ms);
  Seg other = syn_;
  other.seq = 77777;
  toHost(other);
  EXPECT_GE(rig_->passUntilSpoken(1s), 9ms);
  EXPECT_EQ(rig_->takeToHost()[0].bytes, packet(other, false));
}

TEST_F(SynReplayTest, AClientThatBeginsAnewHearsNothingOld) {
  know();
  fromHost({.seq = kHostIsn, .flags = kSyn});
  toHost({.seq = kPeerIsn, .ack = kHostIsn + 1, .flags = kSyn | kAck});
  fromHost({.seq = 4711, .flags = kSyn});
  rig_->pass(2s);
  EXPECT_TRUE(rig_->takeToHost().empty());
}

TEST_F(SynReplayTest, ALegAsSlowAsTheSendersTimerIsLeftToIt) {
  rig_ = std::make_unique<Rig>();
  rig_->open({.leg = 600ms, .byPeer = true});
  toHost(syn_);
  EXPECT_EQ(rig_->passUntilSpoken(5s), 5s);
}

// ---- from a local host

const Seg kOwnSyn{.seq = kHostIsn, .flags = kSyn, .options = {2, 4, 5, 0xb4}};
const Seg kItsAnswer{.seq = kPeerIsn, .ack = kHostIsn + 1, .flags = kSyn | kAck};

// RTT 10 ms, alpha 10: the shim waits for 90 ms and checks again after 10 ms, then 180 ms and 360
// ms, each plus 10 ms. The next replay would be after the host's own timer.
TEST_F(SynReplayTest, OfALocalHostGoesIntoTheTunnelAgainAfterAlphaRoundTrips) {
  for (bool v6 : {false, true}) {
    v6_ = v6;
    know();
    fromHost(kOwnSyn);
    Time sent = rig_->now;
    for (Duration due : {100ms, 290ms, 660ms}) {
      rig_->passUntilSpoken(2s);
      EXPECT_GE(rig_->now - sent, due);
      EXPECT_LE(rig_->now - sent, due + 2ms);
      auto again = rig_->takeToPeer();
      ASSERT_EQ(again.size(), 1u);
      EXPECT_EQ(again[0].bytes, packet(kOwnSyn, true));
    }
    EXPECT_EQ(rig_->passUntilSpoken(2s), 2s);
    EXPECT_EQ(counts().fired, 3u);
  }
}

TEST_F(SynReplayTest, SoDoesTheSynAckOfALocalServer) {
  know();
  toHost(syn_);
  rig_->pass(2ms);
  fromHost(synAck_);
  Duration waited = rig_->passUntilSpoken(1s);
  EXPECT_GE(waited, 100ms);
  EXPECT_LE(waited, 101ms);
  EXPECT_EQ(rig_->takeToPeer().size(), 1u);
  rig_->pass(10ms);
  toHost(third_);
  EXPECT_EQ(counts().useful, 1u);
  EXPECT_EQ(rig_->passUntilSpoken(2s), 2s);
}

TEST_F(SynReplayTest, AnAnswerOfThePeerEndsThat) {
  for (uint8_t flags : {uint8_t{kSyn | kAck}, uint8_t{kRst | kAck}}) {
    know();
    fromHost(kOwnSyn);
    rig_->pass(90ms);
    toHost({.seq = kPeerIsn, .ack = kHostIsn + 1, .flags = flags});
    fromHost({.seq = kHostIsn + 1, .ack = kPeerIsn + 1});
    EXPECT_EQ(rig_->passUntilSpoken(2s), 2s);
    EXPECT_EQ(counts().fired, 0u);
  }
}

TEST_F(SynReplayTest, NothingGoesTwiceToAPeerThatWasNeverHeardOf) {
  rig_ = std::make_unique<Rig>();
  fromHost(kOwnSyn);
  EXPECT_EQ(rig_->passUntilSpoken(2s), 2s);
}

TEST_F(SynReplayTest, NothingGoesTwiceWhileTheTunnelCarriesIt) {
  know();
  rig_->carrying = true;
  fromHost(kOwnSyn);
  EXPECT_EQ(rig_->passUntilSpoken(2s), 2s);
  EXPECT_EQ(counts().fired, 0u);
}

// A segment delivered just before a check may be answered within a round trip.
TEST_F(SynReplayTest, NorForARoundTripAfterThat) {
  for (Duration carried = 80ms; carried <= 200ms; carried += 3ms) {
    know();
    rig_->carrying = true;
    fromHost(kOwnSyn);
    rig_->pass(carried);
    rig_->carrying = false;
    Duration waited = rig_->passUntilSpoken(1s);
    EXPECT_GE(waited, 10ms) << carried / 1ms;
    EXPECT_LE(waited, 21ms) << carried / 1ms;
  }
}

// Karn's rule: it is unknown which of the SYNs was answered. The first data packets measure the
// RTT, which the next connection uses.
TEST_F(SynReplayTest, WhatTheHandshakeCouldNotMeasureTheDataDo) {
  rig_ = std::make_unique<Rig>();
  fromHost(kOwnSyn);
  rig_->pass(1s);
  fromHost(kOwnSyn);
  rig_->pass(10ms);
  toHost(kItsAnswer);
  rig_->pass(2ms);
  fromHost({.seq = kHostIsn + 1, .ack = kPeerIsn + 1});
  ASSERT_NE(flow(), nullptr);
  EXPECT_FALSE(flow()->out.rtt.hasSample());
  fromHost({.seq = kHostIsn + 1, .ack = kPeerIsn + 1, .length = 100});
  rig_->pass(10ms);
  toHost({.seq = kPeerIsn + 1, .ack = kHostIsn + 101});
  rig_->hostPacket(packet(kOwnSyn, true, kPort + 1));
  EXPECT_LE(rig_->passUntilSpoken(1s), 101ms);
  EXPECT_EQ(rig_->takeToPeer().size(), 1u);
}

// Without flows nothing drives the timers. The timer wheel is then behind by more than its horizon.
TEST_F(SynReplayTest, HoursWithoutAFlowChangeNothing) {
  know();
  rig_->pass(121s);
  ASSERT_EQ(rig_->shim.nextDeadline(), kNever);
  rig_->now += 10h;
  toHost(syn_);
  Duration waited = rig_->passUntilSpoken(1s);
  EXPECT_GE(waited, 9ms);
  EXPECT_LE(waited, 9500us);
}

}  // namespace
}  // namespace braid::syn_replay_test
