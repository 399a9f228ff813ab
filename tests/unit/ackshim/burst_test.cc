// The shim helps small bursts, not small connections: it helps a connection of any age with each
// small burst and leaves bulk traffic alone. The leg between gateway and host takes 2 ms, the rest
// of the path 10 ms.

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/ackshim/rig.h"

namespace braid::burst_test {
namespace {

using test::kHostIsn;
using test::kPeerIsn;
using test::Rig;
using test::Seg;

constexpr Duration kLeg = 2ms, kRest = 10ms;
constexpr uint32_t kSegment = 1000, kRequest = 200;

/// A connection of any length, in which either end may send requests.
class BurstTest : public ::testing::Test {
 protected:
  void open(const AckShimOptions& options = {}, const Rig::Opening& opening = {}) {
    rig_ = std::make_unique<Rig>(options);
    rig_->open(opening);
  }
  void host(size_t length) {
    rig_->host({.seq = hostNext_, .ack = peerNext_, .length = length});
    hostNext_ += static_cast<uint32_t>(length);
  }
  void peer(size_t length) { peerAcking(length, hostNext_); }
  void peerAcking(size_t length, uint32_t ack) {
    (void)rig_->peer({.seq = peerNext_, .ack = ack, .length = length});
    peerNext_ += static_cast<uint32_t>(length);
  }
  /// The peer acknowledges all but the last `bytes` bytes.
  void peerAcksAllBut(uint32_t bytes) {
    (void)rig_->peer({.seq = peerNext_, .ack = hostNext_ - bytes});
  }
  void hostAcksAllBut(uint32_t bytes) { rig_->host({.seq = hostNext_, .ack = peerNext_ - bytes}); }
  /// The host sends a request as soon as it has the last answer (the request acknowledges that
  /// answer) and gets `segments` segments.
  void ask(size_t segments) {
    host(kRequest);
    rig_->pass(kRest);
    for (size_t i = 0; i < segments; ++i) peer(kSegment);
    rig_->pass(kLeg);
  }
  /// The peer sends a request, which the host answers with `segments` segments.
  void answer(size_t segments) {
    peer(kRequest);
    rig_->pass(kLeg);
    for (size_t i = 0; i < segments; ++i) host(kSegment);
    rig_->pass(kRest);
  }
  /// Expects that the last received segment is soon replayed to the local host.
  void expectReplay(Duration within) {
    Duration waited = rig_->passUntilSpoken(1s);
    EXPECT_LE(waited, within);
    auto again = rig_->takeToHost();
    ASSERT_EQ(again.size(), 1u);
    EXPECT_EQ(again[0].seq(), peerNext_ - kSegment);
  }
  const ShimFlow& flow() { return *rig_->flow(); }

  std::unique_ptr<Rig> rig_;
  uint32_t hostNext_ = kHostIsn + 1, peerNext_ = kPeerIsn + 1;
};

// ---- persistent connections

TEST_F(BurstTest, TheTailOfAnyAnswerGoesToTheHostAgain) {
  open();
  for (int i = 0; i < 50; ++i) ask(8);  // 400 KB
  ask(8);
  hostAcksAllBut(kSegment);
  expectReplay(kLeg * 3 + 45ms);  // the lone one's ACK may be delayed
}

TEST_F(BurstTest, TheSenderIsToldOfTheLostTailOfAnyAnswer) {
  open();
  for (int i = 0; i < 50; ++i) answer(8);
  answer(8);
  peerAcksAllBut(3 * kSegment);
  EXPECT_LE(rig_->passUntilSpoken(1s), 120ms);
  auto said = rig_->takeToHost();
  ASSERT_EQ(said.size(), 3u);
  EXPECT_EQ(said[0].ack(), hostNext_ - 3 * kSegment);
  EXPECT_EQ(said[0].sacks(), (std::vector<SeqRange>{{{hostNext_ - kSegment}, {hostNext_}}}));
}

// For unsolicited messages, a pause marks the end of each.
TEST_F(BurstTest, SoIsThatOfMessagesWithPauses) {
  open();
  for (int i = 0; i < 50; ++i) {
    for (int n = 0; n < 8; ++n) host(kSegment);
    rig_->pass(kRest);
    peerAcksAllBut(0);
    rig_->pass(50ms);
  }
  for (int i = 0; i < 50; ++i) {
    for (int n = 0; n < 8; ++n) peer(kSegment);
    rig_->pass(kLeg);
    hostAcksAllBut(0);
    rig_->pass(50ms);
  }
  EXPECT_FALSE(flow().in.large);
  EXPECT_FALSE(flow().out.large);
  peer(kSegment);
  expectReplay(60ms);
}

// Each answer is one segment, its ACK delayed by 40 ms or sent with the next question.
TEST_F(BurstTest, WithDelayedAcksToo) {
  open();
  for (int i = 0; i < 150; ++i) {
    ask(1);
    rig_->pass(i % 2 ? 38ms : 20ms);
    if (i % 2) hostAcksAllBut(0);
    rig_->pass(1ms);
  }
  EXPECT_FALSE(flow().in.large);
  EXPECT_EQ(rig_->count(Actuator::kFarReplay).spurious, 0u);
  (void)rig_->takeToHost();
  ask(1);
  expectReplay(120ms);
}

TEST_F(BurstTest, AnAnswerOfMoreThanGammaIsLargeAndTheNextIsNot) {
  open();
  ask(60);
  hostAcksAllBut(0);
  EXPECT_FALSE(flow().in.large);
  for (int i = 0; i < 6; ++i) {
    for (int n = 0; n < 10; ++n) peer(kSegment);
    rig_->pass(kLeg);
    hostAcksAllBut(0);
    rig_->pass(1ms);
  }
  EXPECT_TRUE(flow().in.large);
  EXPECT_EQ(rig_->shim.cachedPackets(), 0u);
  ask(2);
  EXPECT_FALSE(flow().in.large);
  EXPECT_EQ(rig_->shim.cachedPackets(), 2u);
}

// A pause much shorter than the inactivity time: after its timeout a sender starts again with a
// small window (RFC 5681 section 4.1).
TEST_F(BurstTest, AfterAnIdleRestart) {
  open();
  ask(150);
  hostAcksAllBut(0);
  EXPECT_TRUE(flow().in.large);
  rig_->pass(300ms);
  peer(kSegment);
  EXPECT_FALSE(flow().in.large);
  expectReplay(60ms);
}

// Nothing is left of the large phase: the SACK block lies on a segment boundary of this burst.
TEST_F(BurstTest, WhatIsSaidAfterALargeBurstIsOfThisOne) {
  open();
  answer(150);
  peerAcksAllBut(0);
  EXPECT_TRUE(flow().out.large);
  peer(kRequest);
  rig_->pass(kLeg);
  host(700), host(500);
  EXPECT_LE(rig_->passUntilSpoken(1s), 120ms);
  auto said = rig_->takeToHost();
  ASSERT_EQ(said.size(), 3u);
  EXPECT_EQ(said[0].sacks(), (std::vector<SeqRange>{{{hostNext_ - 500}, {hostNext_}}}));
}

// The end of one answer is lost, and the next answer arrives meanwhile. Both count as one burst,
// and its gap is repaired.
TEST_F(BurstTest, WhatComesDuringARepairBelongsToTheBurst) {
  AckShimOptions options;
  options.gamma = 20'000;
  open(options, {.sack = false});
  ask(15);
  hostAcksAllBut(kSegment);
  uint32_t hole = peerNext_ - kSegment;
  rig_->host({.seq = hostNext_,
              .ack = hole,
              .length = kRequest});  // without waiting for the end of the last one
  hostNext_ += kRequest;
  rig_->pass(35ms);
  for (int i = 0; i < 4; ++i) peer(kSegment);
  EXPECT_EQ(flow().in.base, Seq{kPeerIsn + 1});
  rig_->pass(kLeg);
  rig_->host({.seq = hostNext_, .ack = hole});
  EXPECT_LE(rig_->passUntilSpoken(1s), 20ms);
  auto again = rig_->takeToHost();
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].seq(), hole);
  rig_->pass(kLeg);
  hostAcksAllBut(0);
  EXPECT_FALSE(flow().in.large);
  peer(kSegment);
  rig_->pass(kLeg);
  hostAcksAllBut(0);
  EXPECT_TRUE(flow().in.large) << "19 KB, and one more right after them";
}

// ---- bulk

/// Trains of ten segments, each acknowledged at its end, as with a window smaller than the path
/// holds.
TEST_F(BurstTest, BulkWithPausesOfLessThanARoundTripStaysBulk) {
  for (Duration pause : {kRest - kLeg, kRest, 3 * kRest / 2}) {
    hostNext_ = kHostIsn + 1, peerNext_ = kPeerIsn + 1;
    open();
    for (int i = 0; i < 40; ++i) {
      for (int n = 0; n < 10; ++n) peer(kSegment);
      rig_->pass(kLeg);
      hostAcksAllBut(0);
      rig_->pass(pause);
    }
    EXPECT_TRUE(flow().in.large) << pause / 1ms;
    peer(kSegment);
    EXPECT_EQ(rig_->shim.cachedPackets(), 0u);
    EXPECT_EQ(rig_->passUntilSpoken(900ms), 900ms);
  }
}

TEST_F(BurstTest, SoDoesThatOfTheLocalHost) {
  open();
  for (int i = 0; i < 40; ++i) {
    for (int n = 0; n < 10; ++n) host(kSegment);
    rig_->pass(kRest);
    peerAcksAllBut(0);
    rig_->pass(kLeg);
  }
  EXPECT_TRUE(flow().out.large);
  host(kSegment), host(kSegment);
  EXPECT_EQ(rig_->passUntilSpoken(900ms), 900ms);
}

// The leg's RTT is shorter than the interval of the path's segments, so nearly always everything is
// acknowledged. The receiver sometimes sends data, as HTTP/2 does for its window.
TEST_F(BurstTest, SoDoesBulkWhoseReceiverSpeaks) {
  open({}, {.leg = 400us});
  std::vector<uint32_t> said(9, hostNext_);  // what the peer has received, one round trip ago
  for (size_t i = 0; i < 1000; ++i) {
    peerAcking(kSegment, said[i % said.size()]);
    rig_->pass(400us);
    hostAcksAllBut(0);
    if (i % 20 == 19) host(13);
    said[i % said.size()] = hostNext_;
    rig_->pass(800us);
    if (i >= 100) {
      ASSERT_TRUE(flow().in.large) << i;
    }
  }
  EXPECT_EQ(rig_->count(Actuator::kFarReplay).fired, 0u);
}

// The two ends send trains of segments without waiting for each other. The first segment of each
// train acknowledges the first one of the other's.
TEST_F(BurstTest, SoDoesBulkInBothDirections) {
  open();
  uint32_t heard = hostNext_;
  for (int i = 0; i < 40; ++i) {
    for (int n = 0; n < 10; ++n)
      peerAcking(kSegment, heard = std::min(heard + kSegment, hostNext_));
    rig_->pass(kLeg);
    for (uint32_t n = 0; n < 10; ++n) {
      rig_->host({.seq = hostNext_, .ack = peerNext_ - (9 - n) * kSegment, .length = kSegment});
      hostNext_ += kSegment;
    }
    rig_->pass(kRest);
  }
  EXPECT_TRUE(flow().in.large);
}

// ---- copies that were not needed

// The awaited ACK carries a D-SACK. The original's ACK was lost and the copy triggered this one, so
// the replay was not premature.
TEST_F(BurstTest, LostAcksDoNotEndReplays) {
  open();
  for (int i = 0; i < 10; ++i) {
    ask(4);
    EXPECT_LE(rig_->passUntilSpoken(1s), 12ms) << i;
    EXPECT_EQ(rig_->takeToHost().size(), 1u);
    rig_->pass(kLeg);
    rig_->host({.seq = hostNext_,
                .ack = peerNext_,
                .sacks = {{{peerNext_ - 4 * kSegment}, {peerNext_ - 3 * kSegment}}}});
    rig_->pass(20ms);
  }
  EXPECT_EQ(rig_->count(Actuator::kFarReplay).spurious, 10u);
}

// Two premature replays end replays for the flow. After a thousand segments it may try once more.
TEST_F(BurstTest, HasteIsForgiven) {
  open();
  auto haste = [&] {
    ask(1);
    bool again = flow().spuriousReplays < 2 && rig_->passUntilSpoken(150ms) < 150ms;
    (void)rig_->takeToHost();
    hostAcksAllBut(0);  // at once: to the first copy
    return again;
  };
  EXPECT_TRUE(haste());
  EXPECT_TRUE(haste());
  int replays = 0;
  for (int i = 0; i < 5000; ++i) replays += haste();
  EXPECT_GE(replays, 4);
  EXPECT_LE(replays, 5);
}

}  // namespace
}  // namespace braid::burst_test
