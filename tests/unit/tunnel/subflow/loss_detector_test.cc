#include "tunnel/subflow/in_flight.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/tunnel/wire/number_literals.h"

namespace braid::loss_detector_test {
namespace {

constexpr Duration kRtt = 80ms;
const Time kStart = Time{} + 1s;

/// Counts the packets that are examined.
struct CountingPackets : SentPackets {
  uint64_t looks = 0;
  SentPacket& at(PacketNumber pn) {
    ++looks;
    return SentPackets::at(pn);
  }
};

struct LossDetectorTest : testing::Test {
  CountingPackets sent;
  LossDetector loss;

  void send(Time at) {
    SentPacket& p = sent.push();
    p.sentAt = at;
    sent.setState(sent.next() - 1, SentPacket::State::kInFlight);
  }
  void ack(PacketNumber pn) {
    sent.setState(pn, SentPacket::State::kAcked);
    loss.onAcked(pn);
  }
  std::vector<uint64_t> detect(Time now) {
    std::vector<uint64_t> lost;
    loss.detect(sent, kRtt, kRtt, kRtt, now, [&](PacketNumber pn, SentPacket&) {
      sent.setState(pn, SentPacket::State::kLost);
      lost.push_back(pn.value());
    });
    return lost;
  }
};

using Numbers = std::vector<uint64_t>;

TEST_F(LossDetectorTest, NothingIsLostBeforeSomethingLaterArrives) {
  for (int i = 0; i < 10; ++i) send(kStart);
  EXPECT_EQ(detect(kStart + 10s), Numbers{});
  EXPECT_EQ(loss.lossTime(), kNever);
}

// RFC 9002 section 6.1.1: at least three packets before the largest acknowledged.
TEST_F(LossDetectorTest, ThreePacketsLaterIsLost) {
  for (int i = 0; i < 6; ++i) send(kStart);
  ack(3_pn);
  EXPECT_EQ(detect(kStart + kRtt), Numbers{0});
  ack(4_pn);
  EXPECT_EQ(detect(kStart + kRtt), Numbers{1});
}

// A skipped packet number does not count as a later packet.
TEST_F(LossDetectorTest, ANumberThatWasLeftOutIsNoLaterPacket) {
  for (int i = 0; i < 6; ++i) send(kStart);
  sent.setState(2_pn, SentPacket::State::kSkipped);
  ack(3_pn);
  EXPECT_EQ(detect(kStart + kRtt), Numbers{}) << "1 and 3 are later than 0";
  ack(4_pn);
  EXPECT_EQ(detect(kStart + kRtt), Numbers{0});
  ack(5_pn);
  EXPECT_EQ(detect(kStart + kRtt), Numbers{1}) << "3, 4 and 5 are";
}

// RFC 9002 section 6.1.2: 9/8 of the larger of latest and smoothed RTT.
TEST_F(LossDetectorTest, NineEighthsOfTheRttLaterIsLost) {
  send(kStart);
  send(kStart + 1ms);
  ack(1_pn);
  EXPECT_EQ(detect(kStart + kRtt), Numbers{});
  EXPECT_EQ(loss.lossTime(), kStart + 90ms);
  EXPECT_EQ(detect(kStart + 90ms - 1ns), Numbers{});
  EXPECT_EQ(detect(kStart + 90ms), Numbers{0});
  EXPECT_EQ(loss.lossTime(), kNever);
}

// A peer that never acknowledges one packet, and acknowledges the others one at a time, keeps all
// of them in the map of sent packets. Its ACKs must not each cause a walk over the map.
TEST_F(LossDetectorTest, WhatIsSettledIsNotLookedAtAgain) {
  constexpr uint64_t kSent = 8000;
  for (uint64_t i = 0; i < kSent; ++i) send(kStart);
  for (uint64_t pn = 4; pn < kSent; ++pn) {
    ack(PacketNumber(pn));
    detect(kStart + kRtt);
  }
  EXPECT_EQ(sent.first(), 0_pn);
  EXPECT_LE(sent.looks, 2 * kSent) << "each packet once, and one more for each ACK";
}

TEST_F(LossDetectorTest, TheGranularityIsTheLeastWait) {
  EXPECT_EQ(loss.timeThreshold(10us, 10us, 10us), LossDetector::kGranularity);
}

TEST_F(LossDetectorTest, PacketsSentAfterTheLargestAcknowledgedAreNotLost) {
  for (int i = 0; i < 5; ++i) send(kStart);
  ack(0_pn);
  EXPECT_EQ(detect(kStart + 10s), Numbers{});
}

// RFC 8985 section 6.2: once reordering was seen, the packet count alone does not show a loss, and
// the reordering window grows by quarters.
TEST_F(LossDetectorTest, ASpuriousLossTurnsToTimeAlone) {
  for (int i = 0; i < 10; ++i) send(kStart);
  loss.onSpurious();
  EXPECT_TRUE(loss.seesReordering());
  ack(9_pn);
  EXPECT_EQ(detect(kStart + kRtt), Numbers{});
  EXPECT_EQ(loss.lossTime(), kStart + 100ms);  // 80 + 80/4 is more than 90
  EXPECT_EQ(detect(kStart + 100ms).size(), 9u);
}

TEST_F(LossDetectorTest, TheReorderingWindowStopsAtOneRtt) {
  for (int i = 0; i < 20; ++i) loss.onSpurious();
  EXPECT_EQ(loss.timeThreshold(kRtt, kRtt, kRtt), 2 * kRtt);
}

TEST_F(LossDetectorTest, TheReorderingWindowEndsAfterSixteenTrueLossEpisodes) {
  loss.onSpurious();
  Time now = kStart;
  for (int i = 0; i < LossDetector::kPersist; ++i) {
    EXPECT_TRUE(loss.seesReordering()) << i;
    send(now);
    send(now);
    ack(sent.next() - 1);
    now += 10s;
    EXPECT_EQ(detect(now).size(), 1u);
  }
  EXPECT_FALSE(loss.seesReordering());
}

}  // namespace
}  // namespace braid::loss_detector_test
