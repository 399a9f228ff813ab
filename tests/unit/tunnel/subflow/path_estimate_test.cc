#include "tunnel/subflow/path_estimate.h"

#include <gtest/gtest.h>

#include "tests/unit/tunnel/wire/number_literals.h"
#include "tunnel/wire/frames.h"

namespace braid::path_estimate_test {
namespace {

constexpr Duration kRtt = 40ms;

struct PathEstimateTest : testing::Test {
  Time now = Time{} + 1s;
  PathEstimate path{now};
  CongestionEpisode congestion;

  /// Gives the path a well-known RTT.
  void settle() {
    for (int i = 0; i < 40; ++i) path.onRtt(kRtt, {}, now);
  }
  SentPacket send() {
    SentPacket p;
    p.sentAt = now;
    p.bytes = 1000;
    path.onSent(p, true, now);
    return p;
  }
  void lose(PacketNumber pn, SentPacket& packet) { path.onLost(pn, packet, congestion, now); }
  /// Bytes reported with the ACK.
  uint64_t ack(const SentPacket& packet, bool wasLost = false) {
    AckSample sample;
    path.onAcked(packet, wasLost, sample, now);
    return sample.bytes;
  }
};

TEST_F(PathEstimateTest, AMachineThatSleptDoesNotTakeItsSleepForTheRtt) {
  settle();
  path.onRtt(60s, {}, now);
  EXPECT_LT(path.rtt().smoothed(), kRtt + 130ms);  // an eighth of a second
  EXPECT_LT(path.pto(), 2s);
}

TEST_F(PathEstimateTest, APathThatSlowedDownIsBelieved) {
  settle();
  for (int i = 0; i < 60; ++i) path.onRtt(3s, {}, now);
  EXPECT_GT(path.rtt().smoothed(), 2900ms);
}

TEST_F(PathEstimateTest, AProofGivesTheFirstSampleOnly) {
  path.onProof(kRtt, now);
  EXPECT_EQ(path.rtt().smoothed(), kRtt);
  path.onProof(10 * kRtt, now);
  EXPECT_EQ(path.rtt().smoothed(), kRtt);
}

// Found by review: a modem that wakes up may answer the first of several challenges only after many
// seconds.
TEST_F(PathEstimateTest, AProofThatCameLateIsBelievedUpToASecond) {
  path.onProof(9s, now);
  EXPECT_EQ(path.rtt().smoothed(), PathEstimate::kPlausibleRtt);
}

// Found by review: a peer that sends only ACKs may know an outdated RTT, and delay ACKs by a
// quarter of that.
TEST_F(PathEstimateTest, TheDelayOfAcksIsWhatThePeerShowedLatelyOnAFabric) {
  for (int i = 0; i < 10; ++i) path.onRtt(200us, 50us, now);
  EXPECT_EQ(path.maxAckDelay(), 1ms) << "the granularity of timers";
  path.onRtt(3200us, 3ms, now);
  EXPECT_EQ(path.maxAckDelay(), 3ms);
  for (int i = 0; i < 30; ++i) path.onRtt(200us, 50us, now);
  EXPECT_GT(path.maxAckDelay(), 1500us) << "quick ones between are no news";
  for (int i = 0; i < 300; ++i) path.onRtt(200us, 50us, now);
  EXPECT_EQ(path.maxAckDelay(), 1ms);
  path.onRtt(60ms, 50ms, now);
  EXPECT_EQ(path.maxAckDelay(), kMaxAckDelay);
  path.restart();
  EXPECT_EQ(path.maxAckDelay(), kMaxAckDelay) << "nothing is known";
}

TEST_F(PathEstimateTest, AProbeTimesOutAfterTheRttItsVariationAndTheLongestAckDelay) {
  path.onProof(kRtt, now);
  EXPECT_EQ(path.pto(), kRtt + 4 * (kRtt / 2) + kMaxAckDelay);
}

TEST_F(PathEstimateTest, ALossyPathIsExpectedToDeliverLater) {
  path.onProof(kRtt, now);
  ack(send());
  EXPECT_EQ(path.expectedDelay(), kRtt / 2);
  SentPacket lost = send();
  lose(1_pn, lost);
  EXPECT_GT(path.expectedDelay(), kRtt);
}

TEST_F(PathEstimateTest, ALossBesideMarksIsNoLossRate) {
  settle();
  SentPacket lost = send();
  path.onMarks(now);
  lose(0_pn, lost);
  EXPECT_EQ(path.losses().lost(), 1u);
  EXPECT_EQ(path.losses().recentRate(), 0);
  EXPECT_TRUE(path.congestion().congested(now));
  ack(lost, true);
  EXPECT_EQ(path.losses().lost(), 0u);
}

TEST_F(PathEstimateTest, ALossBesideALongQueueIsNoLossRate) {
  settle();
  now += 1s;
  SentPacket queued = send(), lost = send();
  now += 3 * kRtt;
  path.onRtt(3 * kRtt, {}, now);
  ack(queued);
  lose(1_pn, lost);
  EXPECT_EQ(path.losses().recentRate(), 0);
  path.restart();
  EXPECT_FALSE(path.congestion().congested(now)) << "another path";
}

TEST_F(PathEstimateTest, ALateAckTakesTheLossBackWhereItHadCounted) {
  SentPacket lost = send();
  lose(0_pn, lost);
  EXPECT_EQ(path.losses().lost(), 1u);
  SentPacket uncounted = send();  // for example an MTU probe
  EXPECT_EQ(ack(uncounted, true), 1000u);
  EXPECT_EQ(path.losses().lost(), 1u);
  EXPECT_EQ(ack(lost, true), 1000u);
  EXPECT_EQ(path.losses().lost(), 0u);
}

TEST_F(PathEstimateTest, OfWhatASilenceLostOnlyTheFirstFewCount) {
  for (uint64_t silence : {1, 2}) {
    uint64_t before = path.losses().lost();
    std::vector<SentPacket> lost(100);
    for (SentPacket& p : lost) p = send();
    path.onBack(PacketNumber(100 * silence));
    for (uint64_t i = 0; i < 100; ++i) lose(PacketNumber(100 * (silence - 1) + i), lost[i]);
    EXPECT_EQ(path.losses().lost() - before, uint64_t{PathEstimate::kSilenceLosses}) << silence;
    ack(lost[99], true);
    EXPECT_EQ(path.losses().lost() - before, uint64_t{PathEstimate::kSilenceLosses})
        << "it had not counted";
  }
  SentPacket later = send();
  uint64_t before = path.losses().lost();
  lose(200_pn, later);
  EXPECT_EQ(path.losses().lost() - before, 1u) << "sent after the silence";
}

TEST_F(PathEstimateTest, OfAnotherPathNothingIsKnown) {
  settle();
  SentPacket lost = send();
  lose(0_pn, lost);
  ack(send());
  path.restart();
  EXPECT_FALSE(path.rtt().hasSample());
  EXPECT_EQ(path.losses().sent(), 0u);
  EXPECT_EQ(path.losses().lost(), 0u);
  EXPECT_EQ(path.delivered(), 1000u) << "what is delivered stays so";
}

}  // namespace
}  // namespace braid::path_estimate_test
