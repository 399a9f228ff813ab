#include "tunnel/subflow/ecn_validator.h"

#include <gtest/gtest.h>

#include "tests/unit/tunnel/wire/number_literals.h"

namespace braid::ecn_validator_test {
namespace {

using State = EcnValidator::State;

constexpr Duration kPto = 100ms;

struct EcnValidatorTest : testing::Test {
  EcnValidator ecn;
  Time now = Time{} + 1s;
  PacketNumber next{};

  /// Sends `count` packets. Returns how many were sent as ECT(0).
  unsigned send(unsigned count) {
    unsigned marked = 0;
    for (unsigned i = 0; i < count; ++i) marked += ecn.onSent(next++, kPto, now);
    return marked;
  }
  /// An ACK for packets first..last, all sent as ECT(0), with the peer's counts.
  uint64_t ack(PacketNumber first, PacketNumber last, EcnCounts counts) {
    for (PacketNumber pn = first; pn <= last; ++pn) ecn.onAcked(pn);
    return ecn.onAck(last, counts, now);
  }
  void lose(PacketNumber first, PacketNumber last) {
    for (PacketNumber pn = first; pn <= last; ++pn) ecn.onLost(pn, now);
  }
  /// Ten packets that arrive with an unchanged ECN field.
  void prove() {
    send(10);
    ack(next - 10, next - 1, {10, 0, 0});
    ASSERT_EQ(ecn.state(), State::kCapable);
  }
};

TEST_F(EcnValidatorTest, TenPacketsAreMarkedUntilAnAnswerComes) {
  EXPECT_STREQ(ecn.name(), "testing");
  EXPECT_EQ(send(9), 9u);
  EXPECT_STREQ(ecn.name(), "testing");
  EXPECT_EQ(send(3), 1u);
  EXPECT_STREQ(ecn.name(), "unknown");
  EXPECT_EQ(ack(0_pn, 7_pn, {8, 0, 0}), 0u);
  EXPECT_STREQ(ecn.name(), "capable");
  EXPECT_EQ(send(100), 100u);
}

TEST_F(EcnValidatorTest, ThreePtosEndATest) {
  EXPECT_EQ(send(4), 4u);
  now += 299ms;
  EXPECT_EQ(send(1), 1u);
  now += 1ms;
  EXPECT_EQ(send(1), 0u);
  EXPECT_EQ(ecn.state(), State::kUnknown);
}

TEST_F(EcnValidatorTest, OnePacketOfTheTestThatArrivesAsItWasIsEnough) {
  send(4);
  lose(0_pn, 2_pn);
  EXPECT_EQ(ack(3_pn, 3_pn, {1, 0, 0}), 0u);
  EXPECT_EQ(ecn.state(), State::kCapable);
}

TEST_F(EcnValidatorTest, MarksOfACapablePathAreGivenOnce) {
  prove();
  send(16);
  EXPECT_EQ(ack(10_pn, 17_pn, {15, 0, 3}), 3u);
  EXPECT_EQ(ack(18_pn, 25_pn, {22, 0, 4}), 1u);
  EXPECT_EQ(ecn.ceCount(), 4u);
}

TEST_F(EcnValidatorTest, MarksWaitUntilThePathIsKnownToBeCapable) {
  send(10);
  EXPECT_EQ(ack(0_pn, 1_pn, {0, 0, 2}), 0u);
  EXPECT_EQ(ecn.state(), State::kUnknown);
  EXPECT_EQ(ack(2_pn, 9_pn, {5, 0, 5}), 5u);
  EXPECT_EQ(ecn.state(), State::kCapable);
}

// RFC 9000 section 13.4.2.1: counts are not present, or did not grow.
TEST_F(EcnValidatorTest, AMarkedPacketThatIsInNoCountFailsThePath) {
  send(2);
  EXPECT_EQ(ack(0_pn, 1_pn, {1, 0, 0}), 0u);
  EXPECT_EQ(ecn.state(), State::kFailed);
  EXPECT_EQ(send(5), 0u);
}

TEST_F(EcnValidatorTest, APathMayFailLater) {
  prove();
  send(8);
  EXPECT_EQ(ack(10_pn, 17_pn, {17, 0, 0}), 0u) << "one of eight was cleared";
  EXPECT_EQ(ecn.state(), State::kFailed);
}

TEST_F(EcnValidatorTest, TheCountMayGrowByMoreThanWhatTheAckTells) {
  send(10);
  ack(6_pn, 9_pn, {10, 0, 0});
  EXPECT_EQ(ecn.state(), State::kCapable) << "an ACK for 0 to 5 was lost";
}

TEST_F(EcnValidatorTest, MoreThanWasMarkedFailsThePath) {
  prove();
  send(4);
  ack(10_pn, 13_pn, {15, 0, 0});
  EXPECT_EQ(ecn.state(), State::kFailed) << "14 were sent";
}

TEST_F(EcnValidatorTest, ForgedMarksOnUnmarkedPacketsFailThePath) {
  prove();
  send(4);
  EXPECT_EQ(ack(10_pn, 13_pn, {10, 0, 5}), 0u);
  EXPECT_EQ(ecn.state(), State::kFailed);
}

TEST_F(EcnValidatorTest, Ect1IsNeverSentAndFailsThePath) {
  send(4);
  ack(0_pn, 3_pn, {3, 1, 0});
  EXPECT_EQ(ecn.state(), State::kFailed);
}

TEST_F(EcnValidatorTest, CountsThatShrinkFailThePath) {
  prove();
  send(4);
  EXPECT_EQ(ack(10_pn, 13_pn, {9, 0, 5}), 0u);
  EXPECT_EQ(ecn.state(), State::kFailed);
}

TEST_F(EcnValidatorTest, AnOvertakenAckProvesNothing) {
  prove();
  send(20);
  EXPECT_EQ(ack(20_pn, 29_pn, {28, 0, 2}), 2u);
  EXPECT_EQ(ack(10_pn, 19_pn, {19, 0, 1}), 0u);
  EXPECT_EQ(ecn.state(), State::kCapable);
  send(1);
  EXPECT_EQ(ack(30_pn, 30_pn, {28, 0, 3}), 1u);
  EXPECT_EQ(ecn.state(), State::kCapable);
}

// The peer keeps 64 ranges and reports 32. Its ECN counts include the packets for which the ACK had
// no room.
TEST_F(EcnValidatorTest, APacketBelowTheLargestMayHaveBeenCountedBefore) {
  prove();
  send(10);
  EXPECT_EQ(ack(15_pn, 18_pn, {18, 0, 0}), 0u) << "10 to 13 are counted and not reported";
  for (PacketNumber pn = 10_pn; pn <= 13_pn; ++pn) ecn.onAcked(pn);
  EXPECT_EQ(ack(19_pn, 19_pn, {19, 0, 0}), 0u);
  EXPECT_EQ(ecn.state(), State::kCapable);
}

// Appendix A.4.
TEST_F(EcnValidatorTest, ATestOfWhichNothingArrivesFailsThePath) {
  send(12);
  lose(0_pn, 8_pn);
  EXPECT_EQ(ecn.state(), State::kUnknown);
  lose(9_pn, 9_pn);
  EXPECT_EQ(ecn.state(), State::kFailed);
}

TEST_F(EcnValidatorTest, AShortTestGoesOnWhenFewWereLost) {
  send(2);
  now += 3 * kPto;
  lose(0_pn, 1_pn);
  EXPECT_EQ(ecn.state(), State::kTesting);
  EXPECT_EQ(send(1), 1u);
  now += 3 * kPto;
  lose(2_pn, 2_pn);
  EXPECT_EQ(ecn.state(), State::kFailed);
}

TEST_F(EcnValidatorTest, LossesDoNotFailAPathOnceSomethingArrived) {
  send(10);
  ack(9_pn, 9_pn, {1, 0, 0});
  lose(0_pn, 8_pn);
  EXPECT_EQ(ecn.state(), State::kCapable);
  send(10);
  lose(10_pn, 19_pn);
  EXPECT_EQ(ecn.state(), State::kCapable) << "that is congestion, or a path that fell silent";
}

TEST_F(EcnValidatorTest, OnlyLossesOfATestThatNothingOfArrivedMayBeNoCongestion) {
  send(10);
  EXPECT_TRUE(ecn.onLost(0_pn, now));
  ack(3_pn, 4_pn, {2, 0, 0});
  EXPECT_FALSE(ecn.onLost(1_pn, now));
  send(5);
  ecn.onSilence(next);
  EXPECT_FALSE(ecn.onLost(10_pn, now)) << "sent before the test";
  send(3);
  EXPECT_TRUE(ecn.onLost(15_pn, now));
}

TEST_F(EcnValidatorTest, ATestThatArrivesAsCeFailsThePath) {
  send(10);
  EXPECT_EQ(ack(0_pn, 7_pn, {0, 0, 8}), 0u);
  EXPECT_EQ(ecn.state(), State::kUnknown);
  EXPECT_EQ(ack(8_pn, 9_pn, {0, 0, 10}), 0u);
  EXPECT_EQ(ecn.state(), State::kFailed);
}

TEST_F(EcnValidatorTest, LostPacketsDoNotHideThatTheRestIsCe) {
  send(10);
  EXPECT_EQ(ack(2_pn, 9_pn, {0, 0, 8}), 0u);
  lose(0_pn, 1_pn);
  send(1);
  EXPECT_EQ(ecn.onAck(10_pn, {0, 0, 8}, now), 0u);
  EXPECT_EQ(ecn.state(), State::kFailed);
}

TEST_F(EcnValidatorTest, AFewMarksAreNotEnoughForThatVerdict) {
  send(3);
  now += 3 * kPto;
  EXPECT_EQ(ack(0_pn, 2_pn, {0, 0, 3}), 0u);
  EXPECT_EQ(ecn.state(), State::kTesting);
  EXPECT_EQ(send(10), 7u);
  EXPECT_EQ(ack(3_pn, 9_pn, {1, 0, 9}), 9u);
  EXPECT_EQ(ecn.state(), State::kCapable);
}

TEST_F(EcnValidatorTest, AFailedPathIsTestedAgainAfterLongerAndLongerPauses) {
  Duration pause = 1s;
  for (int failure = 0; failure < 12; ++failure) {
    EXPECT_EQ(send(11), 10u);
    lose(next - 11, next - 2);
    ASSERT_EQ(ecn.state(), State::kFailed);
    now += pause - 1ns;
    EXPECT_EQ(send(1), 0u);
    now += 1ns;
    pause = std::min<Duration>(pause * 2, 300s);
  }
  EXPECT_EQ(send(1), 1u);
  ack(next - 1, next - 1, {1, 0, 0});
  EXPECT_EQ(ecn.state(), State::kCapable);
  send(1);
  ack(next - 1, next - 1, {1, 0, 0});
  ASSERT_EQ(ecn.state(), State::kFailed);
  now += 1s;
  EXPECT_EQ(send(1), 1u) << "the pause is short again";
}

TEST_F(EcnValidatorTest, ThePauseStaysShortWhenATestCostsNothing) {
  for (int failure = 0; failure < 4; ++failure) {
    send(10);
    ack(next - 10, next - 1, {});
    ASSERT_EQ(ecn.state(), State::kFailed);
    now += 1s - 1ns;
    EXPECT_EQ(send(1), 0u);
    now += 1ns;
  }
  EXPECT_EQ(send(1), 1u);
}

TEST_F(EcnValidatorTest, AnEarlierProbeShowsThatMarksAreNoForgery) {
  ecn.onProbeSent();
  EXPECT_EQ(ecn.onAck(next++, {1, 0, 0}, now), 0u)
      << "an ACK of something unmarked brings the count";
  EXPECT_EQ(ecn.state(), State::kTesting);
  send(10);
  EXPECT_EQ(ack(1_pn, 4_pn, {1, 0, 4}), 4u);
  EXPECT_EQ(ecn.state(), State::kCapable);
}

TEST_F(EcnValidatorTest, MarksOfAFailedPathAreNeverGiven) {
  send(10);
  ack(0_pn, 9_pn, {0, 0, 10});
  ASSERT_EQ(ecn.state(), State::kFailed);
  send(5);
  EXPECT_EQ(ecn.onAck(14_pn, {0, 0, 15}, now), 0u) << "unmarked packets arrive as CE too";
  now += 1s;
  EXPECT_EQ(send(2), 2u);
  EXPECT_EQ(ack(15_pn, 16_pn, {1, 0, 16}), 1u);
  EXPECT_EQ(ecn.state(), State::kCapable);
}

TEST_F(EcnValidatorTest, ANewRouteIsTestedFromScratch) {
  send(10);
  ack(0_pn, 9_pn, {0, 0, 10});
  ASSERT_EQ(ecn.state(), State::kFailed);
  ecn.onNewPath(next);
  EXPECT_EQ(ecn.state(), State::kTesting);
  EXPECT_EQ(send(12), 10u);
  lose(10_pn, 19_pn);
  ASSERT_EQ(ecn.state(), State::kFailed);
  now += 1s;
  EXPECT_EQ(send(1), 1u) << "the pause is the first one of this route";
}

TEST_F(EcnValidatorTest, WhatTheOldRouteLostSaysNothingOfTheNewOne) {
  send(10);
  ecn.onNewPath(next);
  lose(0_pn, 9_pn);
  EXPECT_EQ(ecn.state(), State::kTesting);
  EXPECT_EQ(send(3), 3u);
  EXPECT_EQ(ack(10_pn, 12_pn, {3, 0, 0}), 0u);
  EXPECT_EQ(ecn.state(), State::kCapable);
}

TEST_F(EcnValidatorTest, AfterSilenceTenPacketsMustShowThatTheyPass) {
  prove();
  send(20);
  ecn.onSilence(next);
  lose(10_pn, 29_pn);
  EXPECT_EQ(ecn.state(), State::kTesting);
  EXPECT_EQ(send(15), 10u);
  lose(30_pn, 39_pn);
  EXPECT_EQ(ecn.state(), State::kFailed);
}

TEST_F(EcnValidatorTest, ThatAllIsMarkedAfterSilenceIsCongestion) {
  prove();
  ecn.onSilence(next);
  send(10);
  EXPECT_EQ(ack(10_pn, 19_pn, {10, 0, 10}), 10u);
  EXPECT_EQ(ecn.state(), State::kCapable);
}

TEST_F(EcnValidatorTest, SilenceChangesNothingElse) {
  send(5);
  ecn.onSilence(next);
  EXPECT_EQ(send(6), 5u) << "the test goes on";
  lose(0_pn, 9_pn);
  ASSERT_EQ(ecn.state(), State::kFailed);
  ecn.onSilence(next);
  EXPECT_EQ(ecn.state(), State::kFailed);
}

}  // namespace
}  // namespace braid::ecn_validator_test
