#include "tunnel/subflow/in_flight.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/tunnel/queue/some_flows.h"
#include "tests/unit/tunnel/wire/number_literals.h"

namespace braid::in_flight_test {
namespace {

constexpr Duration kRtt = 40ms;

using Numbers = std::vector<uint64_t>;

struct InFlightTrackerTest : testing::Test {
  PacketPool pool{1500, 100};
  SomeFlows flows;
  Flow& flow = flows.make();
  DataTracker dataTracker{3s};
  Time now = Time{} + 1s;
  InFlightTracker flight{dataTracker, now};
  RttEstimator rtt;

  void SetUp() override { rtt.onSample(kRtt, {}, now); }
  /// A datagram of 1000 bytes with one inner packet.
  PacketNumber send() {
    PacketNumber pn = flight.packets().next();
    SentPacket& p = flight.push(1000, true, now);
    p.data[0] = dataTracker.create(flow, pool.copy(std::array<uint8_t, 1>{}), now);
    p.dataCount = 1;
    dataTracker.onSent(p.data[0], 0_subflow, pn);
    return pn;
  }
  /// The packets that an ACK with these ranges (newest first) newly acknowledges.
  Numbers newIn(std::initializer_list<std::pair<uint64_t, uint64_t>> ranges) {
    AckFrame ack;
    for (auto [first, last] : ranges)
      ack.ranges[ack.count++] = {PacketNumber(first), PacketNumber(last)};
    Numbers found;
    flight.forEachNew(ack, [&](PacketNumber pn, SentPacket&) { found.push_back(pn.value()); });
    return found;
  }
  Numbers detect() {
    Numbers lost;
    flight.detectLosses(rtt, now, [&](PacketNumber pn, SentPacket& p) {
      lost.push_back(pn.value());
      flight.loseData(p, now);
    });
    return lost;
  }
};

TEST_F(InFlightTrackerTest, OnlyWhatAsksForAnAckIsInFlight) {
  flight.push(100, false, now);
  EXPECT_EQ(flight.bytes(), 0u);
  EXPECT_EQ(flight.oldestPacket(), nullptr);
  flight.push(300, true, now);
  EXPECT_EQ(flight.bytes(), 300u);
  EXPECT_EQ(flight.oldest(), 1_pn);
}

TEST_F(InFlightTrackerTest, ASubflowThatOnlyAnswersDoesNotRunOutOfNumbers) {
  for (size_t i = 0; i < 2 * SentPackets::kMaxSpan; ++i) flight.push(100, false, now);
  EXPECT_FALSE(flight.packets().full());
}

// A lost packet is kept in case its ACK arrives late. While no other ack-eliciting packet is sent,
// no ACK arrives that would remove it.
TEST_F(InFlightTrackerTest, ALossDoesNotUseUpTheNumbersOfASubflowThatOnlyAnswers) {
  for (int i = 0; i < 4; ++i) send();
  now += kRtt;
  for (PacketNumber pn : {1_pn, 2_pn, 3_pn}) flight.onAcked(pn);
  EXPECT_EQ(detect(), Numbers{0});
  for (size_t i = 0; i < 2 * SentPackets::kMaxSpan; ++i) {
    ASSERT_FALSE(flight.packets().full()) << i;
    flight.push(100, false, now);
  }
  flight.push(100, false, now);
  EXPECT_EQ(flight.packets().next() - flight.packets().first(), 1u);
  EXPECT_EQ(dataTracker.records(), 1u) << "its data is to be sent again";
}

TEST_F(InFlightTrackerTest, WhatAsksForNoAckForgetsALossThatIsOldEnough) {
  for (int i = 0; i < 4; ++i) send();
  now += kRtt;
  for (PacketNumber pn : {1_pn, 2_pn, 3_pn}) flight.onAcked(pn);
  EXPECT_EQ(detect(), Numbers{0});
  flight.trim(5 * kRtt, now);
  EXPECT_TRUE(flight.packets().contains(0_pn));
  now += 3 * kRtt;
  flight.push(100, false, now);
  EXPECT_TRUE(flight.packets().contains(0_pn)) << "its ACK may be late";
  now += kRtt;
  flight.push(100, false, now);
  EXPECT_FALSE(flight.packets().contains(0_pn));
}

TEST_F(InFlightTrackerTest, AcknowledgedDataIsDeliveredAndForgotten) {
  send();
  EXPECT_TRUE(flight.isDataMissing(0_pn));
  flight.onAcked(0_pn);
  EXPECT_EQ(flight.bytes(), 0u);
  EXPECT_FALSE(flight.isDataMissing(0_pn));
  EXPECT_EQ(dataTracker.records(), 0u);
  EXPECT_EQ(pool.inUse(), 0u);
}

// In a range the oldest first.
TEST_F(InFlightTrackerTest, AnAckSaysOnlyWhatEarlierOnesDidNot) {
  for (int i = 0; i < 10; ++i) send();
  EXPECT_EQ(newIn({{2, 4}}), (Numbers{2, 3, 4}));
  EXPECT_EQ(newIn({{2, 4}}), Numbers{});
  EXPECT_EQ(newIn({{7, 8}, {1, 5}}), (Numbers{7, 8, 1, 5}));
  EXPECT_EQ(newIn({{0, 9}}), (Numbers{0, 6, 9}));
}

// Two ACKs alternate, and each covers what the other does not. A packet counts as reported if any
// earlier ACK covered it.
TEST_F(InFlightTrackerTest, AlternatingAcksDoNotVisitAPacketTwice) {
  constexpr uint64_t kSent = SentPackets::kMaxSpan - 1;
  flight.push(40, true, now);  // never acknowledged, so no packet is removed
  for (uint64_t pn = 1; pn < kSent; ++pn) flight.push(40, true, now);
  size_t visits = 0;
  for (int turn = 0; turn < 100; ++turn) {
    visits += newIn({{1, kSent / 2}}).size();
    visits += newIn({{kSent / 2 + 1, kSent - 1}}).size();
  }
  EXPECT_EQ(visits, kSent - 1);
}

// A peer may let a path become silent and return any number of times.
TEST_F(InFlightTrackerTest, WhatHasBeenMovedIsNotVisitedAgain) {
  for (int i = 0; i < 100; ++i) flight.push(40, true, now);
  Numbers visited;
  auto visit = [&](PacketNumber pn, const SentPacket&) { visited.push_back(pn.value()); };
  for (int i = 0; i < 10; ++i) flight.moveAll(now, visit);
  EXPECT_EQ(visited.size(), 100u);
  flight.push(40, true, now);
  for (int i = 0; i < 10; ++i) flight.moveAll(now, visit);
  EXPECT_EQ(visited.size(), 101u);
  EXPECT_EQ(visited.back(), 100u);
}

TEST_F(InFlightTrackerTest, DataIsGivenUpAlsoOfWhatLeavesLater) {
  send();
  flight.giveUpData(Drop::kPeerDown);
  send();
  EXPECT_TRUE(flight.isDataMissing(1_pn));
  flight.giveUpData(Drop::kPeerDown);
  EXPECT_FALSE(flight.isDataMissing(1_pn));
  EXPECT_EQ(dataTracker.drops()[static_cast<size_t>(Drop::kPeerDown)], 2u);
}

TEST_F(InFlightTrackerTest, ThePacketThresholdMakesALoss) {
  for (int i = 0; i < 4; ++i) send();
  flight.onAcked(3_pn);
  EXPECT_EQ(detect(), (Numbers{0}));
  EXPECT_EQ(flight.bytes(), 2000u);
  EXPECT_EQ(flight.oldest(), 1_pn);
  EXPECT_EQ(flight.lossTime(), now + kRtt * 9 / 8);
  EXPECT_NE(dataTracker.nextRepair(now), nullptr);
  now = flight.lossTime();
  EXPECT_EQ(detect(), (Numbers{1, 2}));
  EXPECT_EQ(flight.bytes(), 0u);
  EXPECT_EQ(flight.lossTime(), kNever);
}

TEST_F(InFlightTrackerTest, ALostPacketMayStillBeAcknowledged) {
  for (int i = 0; i < 4; ++i) send();
  flight.onAcked(3_pn);
  ASSERT_EQ(detect(), (Numbers{0}));
  flight.onAcked(0_pn);
  EXPECT_EQ(flight.bytes(), 2000u) << "it had left the flight before";
  EXPECT_EQ(dataTracker.nextRepair(now), nullptr);
}

TEST_F(InFlightTrackerTest, DataIsMovedOnceAndIsNotLostAgain) {
  send();
  send();
  Numbers moved;
  flight.moveAll(now, [&](PacketNumber pn, const SentPacket&) { moved.push_back(pn.value()); });
  EXPECT_EQ(moved, (Numbers{0, 1}));
  EXPECT_EQ(dataTracker.queuedRepairs(), 2u);
  EXPECT_EQ(flight.bytes(), 2000u) << "the packets may still arrive";
  flight.moveAll(now, [](PacketNumber, const SentPacket&) {});
  flight.loseAll(now, [](PacketNumber, const SentPacket&) {});
  EXPECT_EQ(dataTracker.queuedRepairs(), 2u);
  EXPECT_EQ(flight.bytes(), 0u);
  flight.onAcked(0_pn);
  EXPECT_EQ(dataTracker.queuedRepairs(), 1u);
}

TEST_F(InFlightTrackerTest, GivenUpDataIsNotSentAgain) {
  send();
  flight.giveUpData(Drop::kPeerDown);
  flight.loseAll(now, [](PacketNumber, const SentPacket&) {});
  EXPECT_EQ(dataTracker.queuedRepairs(), 0u);
  EXPECT_FALSE(flight.isDataMissing(0_pn));
}

TEST_F(InFlightTrackerTest, LostPacketsAreRememberedForAWhile) {
  send();
  flight.loseAll(now, [](PacketNumber, const SentPacket&) {});
  flight.trim(100ms, now + 99ms);
  EXPECT_TRUE(flight.packets().contains(0_pn));
  flight.trim(100ms, now + 100ms);
  EXPECT_FALSE(flight.packets().contains(0_pn));
}

TEST_F(InFlightTrackerTest, NothingBehindTheOldestInFlightIsForgotten) {
  send();
  send();
  flight.onAcked(1_pn);
  flight.trim({}, now + 1h);
  EXPECT_TRUE(flight.packets().contains(0_pn));
  flight.onAcked(0_pn);
  flight.trim({}, now + 1h);
  EXPECT_TRUE(flight.packets().empty());
}

TEST_F(InFlightTrackerTest, ASilentPathRemembersTheLatestPacketsOnly) {
  for (uint64_t i = 0; i < InFlightTracker::kMaxSilentSpan + 2; ++i) flight.push(40, true, now);
  Numbers lost;
  flight.abandonOld(now, [&](PacketNumber pn, const SentPacket&) { lost.push_back(pn.value()); });
  EXPECT_EQ(lost, (Numbers{0, 1}));
  EXPECT_EQ(flight.packets().first(), 2_pn);
  EXPECT_EQ(flight.bytes(), InFlightTracker::kMaxSilentSpan * 40);
}

TEST_F(InFlightTrackerTest, ANumberThatIsLeftOutIsNothingInFlight) {
  send();
  EXPECT_TRUE(flight.skip(now));
  EXPECT_EQ(send(), 2_pn);
  EXPECT_EQ(flight.bytes(), 2000u);
  flight.onAcked(0_pn);
  EXPECT_EQ(flight.oldest(), 2_pn);
  EXPECT_FALSE(flight.isDataMissing(1_pn));
  flight.trim({}, now);
  EXPECT_EQ(flight.packets().first(), 2_pn);
  flight.onAcked(2_pn);
  flight.trim({}, now);
  EXPECT_TRUE(flight.packets().empty());
}

TEST_F(InFlightTrackerTest, ASubflowThatOnlyAnswersMayLeaveNumbersOut) {
  for (size_t i = 0; i < 2 * SentPackets::kMaxSpan; ++i) {
    flight.push(100, false, now);
    ASSERT_TRUE(flight.skip(now));
  }
  EXPECT_LE(flight.packets().next() - flight.packets().first(), 3u);
}

// Steps of two numbers must not jump over the end.
TEST_F(InFlightTrackerTest, WhenNoNumberIsFreeNoneIsLeftOut) {
  for (size_t i = 0; i + 1 < SentPackets::kMaxSpan; ++i) flight.push(40, true, now);
  EXPECT_FALSE(flight.packets().full());
  EXPECT_TRUE(flight.skip(now));
  EXPECT_TRUE(flight.packets().full());
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(flight.skip(now));
  EXPECT_EQ(flight.packets().next() - flight.packets().first(), SentPackets::kMaxSpan);
  flight.abandonOld(now, [](PacketNumber, const SentPacket&) {});
  EXPECT_FALSE(flight.packets().full());
  EXPECT_TRUE(flight.skip(now));
}

TEST_F(InFlightTrackerTest, ProgressBeginsWithTheFirstPacketInFlight) {
  now += 1s;
  send();
  EXPECT_EQ(flight.progressAt(), now);
  Time first = now;
  now += 1s;
  send();
  EXPECT_EQ(flight.progressAt(), first);
  flight.onProgress(now);
  EXPECT_EQ(flight.progressAt(), now);
}

TEST_F(InFlightTrackerTest, ItsEndReleasesWhatIsLeft) {
  {
    InFlightTracker other(dataTracker, now);
    SentPacket& p = other.push(1000, true, now);
    p.data[0] = dataTracker.create(flow, pool.copy(std::array<uint8_t, 1>{}), now);
    p.dataCount = 1;
    dataTracker.onSent(p.data[0], 0_subflow, 0_pn);
  }
  EXPECT_EQ(dataTracker.records(), 0u);
  EXPECT_EQ(pool.inUse(), 0u);
}

}  // namespace
}  // namespace braid::in_flight_test
