#include "tunnel/subflow/subflow_state.h"

#include <gtest/gtest.h>

#include "tests/unit/tunnel/queue/some_flows.h"

namespace braid::subflow_life_test {
namespace {

using State = SubflowStateMachine::State;

constexpr Duration kRtt = 40ms;
constexpr Duration kPto = 100ms;

struct SubflowLifeTest : testing::Test {
  Time now = Time{} + 1s;
  SubflowStateMachine stateMachine;

  void makeSuspect() {
    stateMachine.onProven();
    ASSERT_FALSE(pto());
    ASSERT_TRUE(pto());
  }
  /// A PTO fires after a long silence.
  bool pto() { return stateMachine.onPto(kPto, now - SubflowStateMachine::kSuspectSilence, now); }
  /// Sends the probe that is due.
  void probe() {
    now = stateMachine.probeAt();
    stateMachine.onProbe(now);
    EXPECT_TRUE(stateMachine.owesPing());
    stateMachine.onSent(now);
  }
};

TEST_F(SubflowLifeTest, IsOfUseOnceThePeerHasAnswered) {
  EXPECT_EQ(stateMachine.state(), State::kValidating);
  EXPECT_TRUE(stateMachine.isUnproven());
  EXPECT_FALSE(stateMachine.onAck(now, true)) << "nothing that matters can be acknowledged yet";
  EXPECT_TRUE(stateMachine.onProven());
  EXPECT_TRUE(stateMachine.isUsable());
  EXPECT_FALSE(stateMachine.isUnproven());
  EXPECT_FALSE(stateMachine.onProven()) << "no news";
}

TEST_F(SubflowLifeTest, TwoPtosInARowMakeItSuspect) {
  stateMachine.onProven();
  EXPECT_FALSE(stateMachine.isSilent());
  EXPECT_FALSE(pto());
  EXPECT_TRUE(stateMachine.isSilent());
  EXPECT_TRUE(stateMachine.owesPing());
  EXPECT_TRUE(pto());
  EXPECT_EQ(stateMachine.state(), State::kSuspect);
  EXPECT_TRUE(stateMachine.isSilent());
  EXPECT_EQ(stateMachine.probeAt(), now);
}

// In a data centre PTOs are a few milliseconds apart, while a host may get no CPU for ten
// milliseconds.
TEST_F(SubflowLifeTest, AShortSilenceMakesNoPathSuspectHoweverManyPtosItHas) {
  stateMachine.onProven();
  Time progressAt = now;
  for (Duration silence : {3ms, 5ms, 10ms, 19ms}) {
    EXPECT_FALSE(stateMachine.onPto(2ms, progressAt, progressAt + silence));
    EXPECT_TRUE(stateMachine.owesPing());
    stateMachine.onSent(now);
  }
  EXPECT_TRUE(stateMachine.onPto(2ms, progressAt, progressAt + 20ms));
  EXPECT_EQ(stateMachine.state(), State::kSuspect);
}

/// The path's peer is without the processor for moments.
struct LateTest : SubflowLifeTest {
  static constexpr Duration kShortPto = 2ms;

  void SetUp() override { stateMachine.onProven(); }
  /// Nothing is acknowledged for `silence`, and what was sent at its begin is acknowledged then.
  /// Returns whether the path was suspect meanwhile.
  bool beSilent(Duration silence, bool loses = false) {
    Time began = now;
    bool isSuspect = false;
    while (now + kShortPto < began + silence) {
      now += kShortPto;
      if (!isSuspect) isSuspect = stateMachine.onPto(kShortPto, began, now);
      stateMachine.onSent(now);
    }
    now = began + silence;
    stateMachine.onLate(loses ? now - 1ms : began, now);
    stateMachine.onAck(now - 1ms, true);
    return isSuspect;
  }
};

TEST_F(LateTest, AnAnswerThatWasOnlyLateMakesThePathSuspectLater) {
  EXPECT_TRUE(beSilent(30ms));
  EXPECT_FALSE(beSilent(30ms));
  EXPECT_FALSE(beSilent(58ms));
  EXPECT_TRUE(beSilent(64ms));
  EXPECT_FALSE(beSilent(98ms)) << "but at most 100 ms";
  EXPECT_EQ(stateMachine.blips(), 2u);
}

TEST_F(LateTest, AnOutageMakesNothingLate) {
  EXPECT_TRUE(beSilent(30ms, true)) << "what was sent before it is lost";
  EXPECT_TRUE(beSilent(30ms));
  EXPECT_FALSE(beSilent(30ms));
  now += SubflowStateMachine::kLateKept;
  EXPECT_TRUE(beSilent(100ms));
  EXPECT_TRUE(beSilent(30ms)) << "100 ms are an outage, even if nothing was lost";
}

TEST_F(LateTest, AMinuteLaterThePathIsSuspectAsSoonAsAnyOther) {
  EXPECT_TRUE(beSilent(40ms));
  now += SubflowStateMachine::kLateKept - 80ms;
  EXPECT_FALSE(beSilent(40ms));
  now += 80ms;
  EXPECT_TRUE(beSilent(40ms));
}

TEST_F(LateTest, ASilenceIsToldAfterAHundredMilliseconds) {
  Time began = now;
  EXPECT_EQ(stateMachine.tellAt(), kNever);
  now += 20ms;
  ASSERT_FALSE(stateMachine.onPto(kShortPto, began, now));
  ASSERT_TRUE(stateMachine.onPto(kShortPto, began, now));
  EXPECT_EQ(stateMachine.tellAt(), began + 100ms);
  EXPECT_TRUE(stateMachine.onAck(now, true));
  EXPECT_TRUE(stateMachine.isAfterBlip());
  EXPECT_EQ(stateMachine.blips(), 1u);

  began = now;
  now += 300ms;
  ASSERT_FALSE(stateMachine.onPto(kPto, began, now));
  ASSERT_TRUE(stateMachine.onPto(kPto, began, now));
  EXPECT_EQ(stateMachine.tellAt(), now) << "at once, because it has lasted for that long";
  stateMachine.setTold();
  EXPECT_EQ(stateMachine.tellAt(), kNever) << "once";
  EXPECT_TRUE(stateMachine.onAck(now, true));
  EXPECT_FALSE(stateMachine.isAfterBlip());
  EXPECT_EQ(stateMachine.blips(), 1u);
}

TEST_F(LateTest, IsDownSinceItLastAnswered) {
  Time began = now;
  now += 300ms;
  EXPECT_EQ(stateMachine.down(now), 0ns);
  stateMachine.onPto(kPto, began, now);
  stateMachine.onPto(kPto, began, now);
  EXPECT_EQ(stateMachine.down(now + 1s), 1300ms);
  stateMachine.close(now + 2s);
  EXPECT_EQ(stateMachine.down(now + 2s), 2300ms) << "its uplink is gone, too";
  stateMachine.reopen();
  EXPECT_EQ(stateMachine.down(now + 3s), 3300ms) << "and back, but the peer has not answered";
  stateMachine.onProven();
  EXPECT_EQ(stateMachine.down(now + 4s), 0ns);
  stateMachine.close(now + 5s);
  EXPECT_EQ(stateMachine.down(now + 6s), 1s);
}

TEST_F(SubflowLifeTest, AnAckBetweenThemBeginsAnew) {
  stateMachine.onProven();
  pto();
  EXPECT_FALSE(stateMachine.onAck(now, true)) << "it is as active as before";
  EXPECT_FALSE(stateMachine.isSilent());
  EXPECT_FALSE(pto());
}

// Found by review: in a data centre a PING was sent every two milliseconds as long as packets of
// the peer arrived.
TEST_F(SubflowLifeTest, OnAFabricAHeardPeerHastensTheNextProbeToTwentyMillisecondsAfterTheLast) {
  makeSuspect();
  for (int i = 0; i < 12; ++i) probe();
  ASSERT_GT(stateMachine.probeAt(), now + 100ms);
  stateMachine.onPacket(2ms, now);
  EXPECT_EQ(stateMachine.probeAt(), now + SubflowStateMachine::kSuspectSilence);
}

TEST_F(SubflowLifeTest, AnAckBringsASuspectPathBack) {
  makeSuspect();
  EXPECT_FALSE(stateMachine.isStale(now));
  EXPECT_TRUE(stateMachine.isStale(now + 2s));
  EXPECT_TRUE(stateMachine.onAck(now, true));
  EXPECT_TRUE(stateMachine.isUsable());
  EXPECT_FALSE(stateMachine.isStale(now + 2s));
  EXPECT_EQ(stateMachine.probeAt(), kNever);
}

// A path that fails in one direction: the ACKs arrive on another path.
TEST_F(SubflowLifeTest, AnAckOverAnotherPathBringsItBackOnlyWhenSomethingHasComeOnItSinceTheProbe) {
  makeSuspect();
  stateMachine.onPacket(kPto, now);
  probe();
  Time probed = now;
  now += kRtt;
  EXPECT_FALSE(stateMachine.onAck(probed, false));
  EXPECT_EQ(stateMachine.state(), State::kSuspect);
  EXPECT_STREQ(stateMachine.deadWay(now), "in");
  EXPECT_TRUE(stateMachine.onPacket(kPto, now)) << "it is heard now, and was reached";
  EXPECT_TRUE(stateMachine.isUsable());

  ASSERT_FALSE(pto());
  ASSERT_TRUE(pto());
  probe();
  EXPECT_FALSE(stateMachine.onPacket(kPto, now + kRtt));
  EXPECT_TRUE(stateMachine.onAck(now, false)) << "the other way round";
}

TEST_F(SubflowLifeTest, WhatIsHeardOnAPathThatIsNotReachedDoesNotBringItBack) {
  makeSuspect();
  for (int i = 0; i < 20; ++i) {
    probe();
    EXPECT_FALSE(stateMachine.onPacket(kPto, now));
  }
  EXPECT_STREQ(stateMachine.deadWay(now), "out");
  EXPECT_STREQ(stateMachine.deadWay(now + 5s), "") << "nothing comes any more either";
}

TEST_F(SubflowLifeTest, AsksOnceWhenNothingIsHeardForTheKeepaliveTimeAlthoughItHasAskedForAcks) {
  stateMachine.onProven();
  EXPECT_EQ(stateMachine.askAt(10s), kNever);
  stateMachine.onSent(now);
  stateMachine.onSent(now + 5s);
  stateMachine.onAck(now, false);
  EXPECT_EQ(stateMachine.askAt(10s), now + 10s);
  stateMachine.ask(now + 10s);
  EXPECT_TRUE(stateMachine.owesPing());
  EXPECT_EQ(stateMachine.askAt(10s), kNever);
  stateMachine.onPacket(kPto, now + 11s);
  EXPECT_EQ(stateMachine.askAt(10s), kNever);
  stateMachine.onSent(now + 12s);
  EXPECT_EQ(stateMachine.askAt(10s), now + 22s);
}

TEST_F(SubflowLifeTest, AsksAPeerThatAsksAgainOnceInTheKeepaliveTime) {
  stateMachine.onProven();
  stateMachine.onSent(now);
  stateMachine.onPacket(kPto, now);
  stateMachine.onPing(5s, now + 3s);
  stateMachine.onPing(5s, now + 8s);
  EXPECT_EQ(stateMachine.askAt(10s), kNever) << "its keepalives";
  stateMachine.onPing(5s, now + 9s);
  stateMachine.onPing(5s, now + 18s);
  EXPECT_EQ(stateMachine.askAt(10s), now + 10s);
  stateMachine.onSent(now + 10s);
  stateMachine.onPacket(kPto, now + 10s);
  EXPECT_EQ(stateMachine.askAt(10s), kNever);
}

TEST_F(SubflowLifeTest, WhatThePeerRefusesIsNotProbedAndNotBackByAnAck) {
  stateMachine.onProven();
  EXPECT_TRUE(stateMachine.onPeerStatus(true, kPto, now));
  EXPECT_EQ(stateMachine.state(), State::kSuspect);
  EXPECT_EQ(stateMachine.probeAt(), kNever);
  EXPECT_FALSE(stateMachine.onAck(now, true));
  EXPECT_FALSE(stateMachine.onPeerStatus(false, kPto, now)) << "it must answer first";
  EXPECT_EQ(stateMachine.probeAt(), now);
  EXPECT_TRUE(stateMachine.onAck(now, true));
}

TEST_F(SubflowLifeTest, WhatTheKernelRefusesIsProbedAfterAPause) {
  stateMachine.onProven();
  EXPECT_TRUE(stateMachine.onSendError(kPto, now));
  EXPECT_EQ(stateMachine.probeAt(), now + kPto);
  now += 1ms;
  EXPECT_FALSE(stateMachine.onSendError(kPto, now));
  EXPECT_EQ(stateMachine.probeAt(), now + kPto);
}

TEST_F(SubflowLifeTest, WhenThePeerIsHeardASuspectPathIsProbedUnlessThatComesAnyway) {
  makeSuspect();
  for (int i = 0; i < 8; ++i) probe();
  Time due = stateMachine.probeAt();
  ASSERT_GT(due, now + kPto);
  stateMachine.requestPing();
  stateMachine.onPacket(kPto, now);
  EXPECT_EQ(stateMachine.probeAt(), due) << "a PING is due";
  stateMachine.onSent(now);
  stateMachine.onPacket(kPto, due - kPto);
  EXPECT_EQ(stateMachine.probeAt(), due);
  stateMachine.onPacket(kPto, now);
  EXPECT_EQ(stateMachine.probeAt(), now + kPto) << "a PTO after the last probe";
  probe();
  now += 2 * kPto;
  ASSERT_GT(stateMachine.probeAt(), now + kPto);
  stateMachine.onPacket(kPto, now);
  EXPECT_EQ(stateMachine.probeAt(), now);
}

// The next probe detects that a path has returned.
TEST_F(SubflowLifeTest, ThePausesBetweenProbesAreHalfOfTheSilenceAtMost) {
  makeSuspect();
  Time began = now;
  for (int probes = 0; now < began + 60s; ++probes) {
    Duration pause = stateMachine.probeAt() - now;
    EXPECT_LE(pause, std::max<Duration>(kPto, (now - began) / 2)) << toSeconds(now - began);
    EXPECT_LE(pause, state::Suspect::kMaxProbeInterval);
    ASSERT_LT(probes, 60 + 10) << "and one a second in the long run";
    now = stateMachine.probeAt();
    stateMachine.onProbe(now);
  }
}

// A peer that sends all the time but acknowledges nothing.
TEST_F(SubflowLifeTest, HoweverMuchIsHeardAProbeGoesOnceInAPto) {
  makeSuspect();
  int probes = 0;
  for (Time end = now + 10s; now < end; now += 1ms) {
    stateMachine.onPacket(kPto, now);
    if (stateMachine.probeAt() > now) continue;
    stateMachine.onProbe(now);
    stateMachine.onSent(now);
    ++probes;
  }
  EXPECT_LE(probes, 10s / kPto + 1);
  EXPECT_GE(probes, 10s / kPto - 1);
}

// Found by review: while the peer refused a path but acknowledged on it, each of its ACKs caused a
// PING.
TEST_F(SubflowLifeTest, WhatIsRefusedIsNotProbedWhateverIsHeardThere) {
  makeSuspect();
  probe();
  EXPECT_FALSE(stateMachine.onPeerStatus(true, kPto, now));
  for (int i = 0; i < 100; ++i, now += 10ms) {
    stateMachine.onPacket(kPto, now);
    EXPECT_FALSE(stateMachine.onAck(now, true));
    stateMachine.onNewRoute(now);
    stateMachine.onSendError(kPto, now);
    EXPECT_EQ(stateMachine.probeAt(), kNever);
  }
  EXPECT_FALSE(stateMachine.onPeerStatus(false, kPto, now));
  EXPECT_EQ(stateMachine.probeAt(), now) << "at once, however long the pauses had become";
  EXPECT_TRUE(stateMachine.onAck(now, true));
}

// Found by review: each SUBFLOW_STATUS with a new sequence number caused a PING.
TEST_F(SubflowLifeTest, AWordOfThePeerThatChangesNothingBuysNoPing) {
  stateMachine.onProven();
  EXPECT_FALSE(stateMachine.onPeerStatus(false, kPto, now));
  EXPECT_FALSE(stateMachine.owesPing());
  ASSERT_FALSE(pto());
  ASSERT_TRUE(pto());
  for (int i = 0; i < 8; ++i) probe();
  Time due = stateMachine.probeAt();
  ASSERT_GT(due, now);
  stateMachine.onSent(now);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(stateMachine.onPeerStatus(false, kPto, now));
    EXPECT_EQ(stateMachine.probeAt(), due);
    EXPECT_FALSE(stateMachine.owesPing());
  }
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(stateMachine.onPeerStatus(true, kPto, now));
    EXPECT_EQ(stateMachine.probeAt(), kNever);
    EXPECT_FALSE(stateMachine.owesPing());
  }
}

TEST_F(SubflowLifeTest, AProofEndsARefusal) {
  stateMachine.onPeerStatus(true, kPto, now);
  EXPECT_EQ(stateMachine.state(), State::kValidating);
  EXPECT_TRUE(stateMachine.onProven());
  ASSERT_FALSE(pto());
  ASSERT_TRUE(pto());
  EXPECT_EQ(stateMachine.probeAt(), now);
  EXPECT_TRUE(stateMachine.onAck(now, true));
}

TEST_F(SubflowLifeTest, OnANewRouteASuspectPathIsProbedAtOnce) {
  makeSuspect();
  probe();
  ASSERT_GT(stateMachine.probeAt(), now);
  stateMachine.onNewRoute(now);
  EXPECT_EQ(stateMachine.probeAt(), now);
}

TEST_F(SubflowLifeTest, AClosedOneComesBackWhenItsNewRouteIsProven) {
  stateMachine.onProven();
  EXPECT_FALSE(stateMachine.reopen()) << "it is not closed";
  stateMachine.requestPing();
  EXPECT_TRUE(stateMachine.close(now));
  EXPECT_FALSE(stateMachine.owesPing());
  EXPECT_FALSE(stateMachine.isUnproven()) << "there is no route";
  EXPECT_TRUE(stateMachine.reopen());
  EXPECT_TRUE(stateMachine.isUnproven());
  EXPECT_FALSE(stateMachine.close(now)) << "it is still closed";
  EXPECT_FALSE(stateMachine.isUnproven());
  EXPECT_TRUE(stateMachine.reopen());
  EXPECT_TRUE(stateMachine.onProven());
  EXPECT_TRUE(stateMachine.isUsable());
}

TEST_F(SubflowLifeTest, HasAnotherNameWhenItHasLongBeenSuspect) {
  EXPECT_STREQ(stateMachine.name(now), "validating");
  makeSuspect();
  EXPECT_STREQ(stateMachine.name(now), "suspect");
  EXPECT_STREQ(stateMachine.name(now + 11s), "failed");
  stateMachine.onAck(now, true);
  EXPECT_STREQ(stateMachine.name(now + 11s), "active");
  stateMachine.close(now);
  EXPECT_STREQ(stateMachine.name(now), "closed");
  stateMachine.reopen();
  EXPECT_STREQ(stateMachine.name(now), "validating") << "its uplink is back";
}

/// With what is in flight.
struct PtoTest : SubflowLifeTest {
  DataTracker dataTracker{3s};
  InFlightTracker flight{dataTracker, now};
  PathEstimate path{now};

  void SetUp() override {
    path.onRtt(kRtt, {}, now);  // so the variation is half of it
    stateMachine.onProven();
  }
  Time due() const { return stateMachine.ptoDeadline(flight, path, kPto); }
};

TEST_F(PtoTest, NeedsSomethingInFlightOnAnActivePath) {
  EXPECT_EQ(due(), kNever);
  flight.push(1000, true, now);
  EXPECT_EQ(due(), now + kPto);
  stateMachine.close(now);
  EXPECT_EQ(due(), kNever);
}

TEST_F(PtoTest, RunsAfterAQuestionUntilSomethingIsHeardWhateverAnotherPathAcknowledges) {
  stateMachine.ask(now);
  EXPECT_EQ(due(), now + kPto);
  stateMachine.onSent(now);
  EXPECT_FALSE(stateMachine.onAck(now, false));
  EXPECT_EQ(due(), now + kPto);
  EXPECT_FALSE(stateMachine.onPto(kPto, kNever, now + kPto));
  EXPECT_FALSE(stateMachine.onAck(now + kPto, false));
  EXPECT_EQ(due(), now + 2 * kPto);
  stateMachine.onPacket(kPto, now + 2 * kPto);
  EXPECT_EQ(due(), kNever);
  EXPECT_FALSE(stateMachine.isSilent());
  stateMachine.ask(now);
  EXPECT_FALSE(stateMachine.onPto(kPto, kNever, now + kPto));
  EXPECT_TRUE(stateMachine.onPto(kPto, kNever, now + 2 * kPto));
  EXPECT_EQ(stateMachine.state(), State::kSuspect);
}

TEST_F(PtoTest, CountsFromTheOldestPacketHoweverMuchFollows) {
  Time first = now;
  for (int i = 0; i < 10; ++i, now += 5ms) flight.push(1000, true, now);
  EXPECT_EQ(due(), first + kPto);
}

TEST_F(PtoTest, WaitsOutTheJitterAfterAnAck) {
  flight.push(1000, true, now);
  now += 60ms;
  flight.onProgress(now);
  EXPECT_EQ(due(), now + 2 * kRtt + kMaxAckDelay);
  for (int i = 0; i < 100; ++i) path.onRtt(kRtt, {}, now);
  flight.onProgress(now + 60ms);
  EXPECT_EQ(due(), now + 60ms + PathEstimate::kQuiet + kMaxAckDelay) << "a path without jitter";
}

// Found by review: with pauses that only double, the PTO that makes the path suspect came up to 8
// ms later.
TEST_F(PtoTest, AtAnyRttADeadFabricPathIsSuspectSoonAfterTheSilenceThatThisTakes) {
  for (Duration rtt : {100us, 240us, 700us, 1000us, 1080us, 1100us, 1900us, 2000us, 4000us}) {
    SCOPED_TRACE(toMilliseconds(rtt));
    path = PathEstimate(now);
    for (int i = 0; i < 100; ++i) path.onRtt(rtt, {}, now);
    stateMachine = {};
    stateMachine.onProven();
    InFlightTracker dead{dataTracker, now};
    dead.push(1000, true, now);
    Time began = now, at = now;
    int pings = 0;
    for (bool suspect = false; !suspect && pings < 100; ++pings, stateMachine.onSent(now)) {
      Time next = stateMachine.ptoDeadline(dead, path, path.pto());
      ASSERT_GE(next - at, 1ms) << "no storm";
      at = next;
      suspect = stateMachine.onPto(path.pto(), dead.progressAt(), at);
    }
    EXPECT_EQ(stateMachine.state(), State::kSuspect);
    EXPECT_GE(at - began, SubflowStateMachine::kSuspectSilence);
    EXPECT_LE(at - began, SubflowStateMachine::kSuspectSilence + path.pto());
    EXPECT_LE(pings, 5);
  }
}

TEST_F(PtoTest, APeerThatIsSlowToAcknowledgeIsGivenItsTime) {
  path = PathEstimate(now);
  for (int i = 0; i < 100; ++i) path.onRtt(240us, {}, now);
  flight.push(1000, true, now);
  Time quick = stateMachine.ptoDeadline(flight, path, 2ms);
  path.onRtt(4240us, 4ms, now);
  EXPECT_EQ(stateMachine.ptoDeadline(flight, path, 2ms), quick + 3ms)
      << "for the granularity of 1 ms";
}

TEST_F(PtoTest, ThoseOfAnotherRouteAreForgotten) {
  flight.push(1000, true, now);
  pto();
  stateMachine.forgetPtos();
  EXPECT_FALSE(stateMachine.isSilent());
  EXPECT_EQ(due(), now + kPto);
  EXPECT_FALSE(pto());
}

// A lost tail of a flow waits for this timer; 15 ms would be sixty round trips.
TEST_F(PtoTest, OnAFabricItComesAfterAFewMilliseconds) {
  path = PathEstimate(now);
  for (int i = 0; i < 100; ++i) path.onRtt(240us, {}, now);
  flight.push(1000, true, now);
  EXPECT_EQ(stateMachine.ptoDeadline(flight, path, 2ms), now + PathEstimate::kLeastQuiet + 1ms);
  path = PathEstimate(now);
  for (int i = 0; i < 100; ++i) path.onRtt(1500us, {}, now);
  EXPECT_EQ(stateMachine.ptoDeadline(flight, path, 2ms), now + 6ms + 1500us)
      << "four round trips, and the peer's delay";
}

TEST_F(PtoTest, FollowsTheOneBefore) {
  flight.push(1000, true, now);
  now = due();
  pto();
  EXPECT_EQ(due(), now + kPto);
}

}  // namespace
}  // namespace braid::subflow_life_test
