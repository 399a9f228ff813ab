#include "tunnel/subflow/subflow_life.h"

#include <gtest/gtest.h>

#include "tests/unit/tunnel/lane/some_flows.h"

namespace braid::subflow_life_test {
namespace {

using State = SubflowLife::State;

constexpr Duration kRtt = 40ms;
constexpr Duration kPto = 100ms;

struct SubflowLifeTest : testing::Test {
  Time now = Time{} + 1s;
  SubflowLife life;

  void makeSuspect() {
    life.onProven();
    ASSERT_FALSE(pto());
    ASSERT_TRUE(pto());
  }
  /// After a long silence.
  bool pto() { return life.onPto(kPto, now - SubflowLife::kSuspectSilence, now); }
  /// The probe that is due goes.
  void probe() {
    now = life.probeAt();
    life.onProbe(now);
    EXPECT_TRUE(life.owesPing());
    life.onSent(now);
  }
};

TEST_F(SubflowLifeTest, IsOfUseOnceThePeerHasAnswered) {
  EXPECT_EQ(life.state(), State::kValidating);
  EXPECT_TRUE(life.isUnproven());
  EXPECT_FALSE(life.onAck(now, true)) << "nothing that matters can be acknowledged yet";
  EXPECT_TRUE(life.onProven());
  EXPECT_TRUE(life.isUsable());
  EXPECT_FALSE(life.isUnproven());
  EXPECT_FALSE(life.onProven()) << "no news";
}

TEST_F(SubflowLifeTest, TwoPtosInARowMakeItSuspect) {
  life.onProven();
  EXPECT_FALSE(life.isSilent());
  EXPECT_FALSE(pto());
  EXPECT_TRUE(life.isSilent());
  EXPECT_TRUE(life.owesPing());
  EXPECT_TRUE(pto());
  EXPECT_EQ(life.state(), State::kSuspect);
  EXPECT_TRUE(life.isSilent());
  EXPECT_EQ(life.probeAt(), now);
}

// On a fabric PTOs are a few milliseconds apart, and a host may well be kept from its processor for ten.
TEST_F(SubflowLifeTest, AShortSilenceMakesNoPathSuspectHoweverManyPtosItHas) {
  life.onProven();
  Time progressAt = now;
  for (Duration silence : {3ms, 5ms, 10ms, 19ms}) {
    EXPECT_FALSE(life.onPto(2ms, progressAt, progressAt + silence));
    EXPECT_TRUE(life.owesPing());
    life.onSent(now);
  }
  EXPECT_TRUE(life.onPto(2ms, progressAt, progressAt + 20ms));
  EXPECT_EQ(life.state(), State::kSuspect);
}

TEST_F(SubflowLifeTest, AnAckBetweenThemBeginsAnew) {
  life.onProven();
  pto();
  EXPECT_FALSE(life.onAck(now, true)) << "it is as active as before";
  EXPECT_FALSE(life.isSilent());
  EXPECT_FALSE(pto());
}

// Found by review: on a fabric it was a PING every two milliseconds for as long as the peer was heard.
TEST_F(SubflowLifeTest, OnAFabricAHeardPeerHastensTheNextProbeToTwentyMillisecondsAfterTheLast) {
  makeSuspect();
  for (int i = 0; i < 12; ++i) probe();
  ASSERT_GT(life.probeAt(), now + 100ms);
  life.onPacket(2ms, now);
  EXPECT_EQ(life.probeAt(), now + SubflowLife::kSuspectSilence);
}

TEST_F(SubflowLifeTest, AnAckBringsASuspectPathBack) {
  makeSuspect();
  EXPECT_FALSE(life.isStale(now));
  EXPECT_TRUE(life.isStale(now + 2s));
  EXPECT_TRUE(life.onAck(now, true));
  EXPECT_TRUE(life.isUsable());
  EXPECT_FALSE(life.isStale(now + 2s));
  EXPECT_EQ(life.probeAt(), kNever);
}

// A path that is dead one way: the ACKs come over another one.
TEST_F(SubflowLifeTest, AnAckOverAnotherPathBringsItBackOnlyWhenSomethingHasComeOnItSinceTheProbe) {
  makeSuspect();
  life.onPacket(kPto, now);
  probe();
  Time probed = now;
  now += kRtt;
  EXPECT_FALSE(life.onAck(probed, false));
  EXPECT_EQ(life.state(), State::kSuspect);
  EXPECT_STREQ(life.deadWay(now), "in");
  EXPECT_TRUE(life.onPacket(kPto, now)) << "it is heard now, and was reached";
  EXPECT_TRUE(life.isUsable());

  ASSERT_FALSE(pto());
  ASSERT_TRUE(pto());
  probe();
  EXPECT_FALSE(life.onPacket(kPto, now + kRtt));
  EXPECT_TRUE(life.onAck(now, false)) << "the other way round";
}

TEST_F(SubflowLifeTest, WhatIsHeardOnAPathThatIsNotReachedDoesNotBringItBack) {
  makeSuspect();
  for (int i = 0; i < 20; ++i) {
    probe();
    EXPECT_FALSE(life.onPacket(kPto, now));
  }
  EXPECT_STREQ(life.deadWay(now), "out");
  EXPECT_STREQ(life.deadWay(now + 5s), "") << "nothing comes any more either";
}

TEST_F(SubflowLifeTest, AsksOnceWhenNothingIsHeardForTheKeepaliveTimeAlthoughItHasAskedForAcks) {
  life.onProven();
  EXPECT_EQ(life.askAt(10s), kNever);
  life.onSent(now);
  life.onSent(now + 5s);
  life.onAck(now, false);
  EXPECT_EQ(life.askAt(10s), now + 10s);
  life.ask(now + 10s);
  EXPECT_TRUE(life.owesPing());
  EXPECT_EQ(life.askAt(10s), kNever);
  life.onPacket(kPto, now + 11s);
  EXPECT_EQ(life.askAt(10s), kNever);
  life.onSent(now + 12s);
  EXPECT_EQ(life.askAt(10s), now + 22s);
}

TEST_F(SubflowLifeTest, AsksAPeerThatAsksAgainOnceInTheKeepaliveTime) {
  life.onProven();
  life.onSent(now);
  life.onPacket(kPto, now);
  life.onPing(5s, now + 3s);
  life.onPing(5s, now + 8s);
  EXPECT_EQ(life.askAt(10s), kNever) << "its keepalives";
  life.onPing(5s, now + 9s);
  life.onPing(5s, now + 18s);
  EXPECT_EQ(life.askAt(10s), now + 10s);
  life.onSent(now + 10s);
  life.onPacket(kPto, now + 10s);
  EXPECT_EQ(life.askAt(10s), kNever);
}

TEST_F(SubflowLifeTest, WhatThePeerRefusesIsNotProbedAndNotBackByAnAck) {
  life.onProven();
  EXPECT_TRUE(life.onPeerStatus(true, kPto, now));
  EXPECT_EQ(life.state(), State::kSuspect);
  EXPECT_EQ(life.probeAt(), kNever);
  EXPECT_FALSE(life.onAck(now, true));
  EXPECT_FALSE(life.onPeerStatus(false, kPto, now)) << "it must answer first";
  EXPECT_EQ(life.probeAt(), now);
  EXPECT_TRUE(life.onAck(now, true));
}

TEST_F(SubflowLifeTest, WhatTheKernelRefusesIsProbedAfterAPause) {
  life.onProven();
  EXPECT_TRUE(life.onSendError(kPto, now));
  EXPECT_EQ(life.probeAt(), now + kPto);
  now += 1ms;
  EXPECT_FALSE(life.onSendError(kPto, now));
  EXPECT_EQ(life.probeAt(), now + kPto);
}

TEST_F(SubflowLifeTest, WhenThePeerIsHeardASuspectPathIsProbedUnlessThatComesAnyway) {
  makeSuspect();
  for (int i = 0; i < 8; ++i) probe();
  Time due = life.probeAt();
  ASSERT_GT(due, now + kPto);
  life.requestPing();
  life.onPacket(kPto, now);
  EXPECT_EQ(life.probeAt(), due) << "a PING is due";
  life.onSent(now);
  life.onPacket(kPto, due - kPto);
  EXPECT_EQ(life.probeAt(), due);
  life.onPacket(kPto, now);
  EXPECT_EQ(life.probeAt(), now + kPto) << "a PTO after the last probe";
  probe();
  now += 2 * kPto;
  ASSERT_GT(life.probeAt(), now + kPto);
  life.onPacket(kPto, now);
  EXPECT_EQ(life.probeAt(), now);
}

// A path that comes back is found out by the next probe.
TEST_F(SubflowLifeTest, ThePausesBetweenProbesAreHalfOfTheSilenceAtMost) {
  makeSuspect();
  Time began = now;
  for (int probes = 0; now < began + 60s; ++probes) {
    Duration pause = life.probeAt() - now;
    EXPECT_LE(pause, std::max<Duration>(kPto, (now - began) / 2)) << toSeconds(now - began);
    EXPECT_LE(pause, state::Suspect::kMaxProbeInterval);
    ASSERT_LT(probes, 60 + 10) << "and one a second in the long run";
    now = life.probeAt();
    life.onProbe(now);
  }
}

// A peer that is heard all the time and acknowledges nothing.
TEST_F(SubflowLifeTest, HoweverMuchIsHeardAProbeGoesOnceInAPto) {
  makeSuspect();
  int probes = 0;
  for (Time end = now + 10s; now < end; now += 1ms) {
    life.onPacket(kPto, now);
    if (life.probeAt() > now) continue;
    life.onProbe(now);
    life.onSent(now);
    ++probes;
  }
  EXPECT_LE(probes, 10s / kPto + 1);
  EXPECT_GE(probes, 10s / kPto - 1);
}

// Found by review: while the peer refused a path and acknowledged there, its ACKs brought a PING each.
TEST_F(SubflowLifeTest, WhatIsRefusedIsNotProbedWhateverIsHeardThere) {
  makeSuspect();
  probe();
  EXPECT_FALSE(life.onPeerStatus(true, kPto, now));
  for (int i = 0; i < 100; ++i, now += 10ms) {
    life.onPacket(kPto, now);
    EXPECT_FALSE(life.onAck(now, true));
    life.onNewRoute(now);
    life.onSendError(kPto, now);
    EXPECT_EQ(life.probeAt(), kNever);
  }
  EXPECT_FALSE(life.onPeerStatus(false, kPto, now));
  EXPECT_EQ(life.probeAt(), now) << "at once, however long the pauses had become";
  EXPECT_TRUE(life.onAck(now, true));
}

// Found by review: each SUBFLOW_STATUS with a new sequence number bought a PING.
TEST_F(SubflowLifeTest, AWordOfThePeerThatChangesNothingBuysNoPing) {
  life.onProven();
  EXPECT_FALSE(life.onPeerStatus(false, kPto, now));
  EXPECT_FALSE(life.owesPing());
  ASSERT_FALSE(pto());
  ASSERT_TRUE(pto());
  for (int i = 0; i < 8; ++i) probe();
  Time due = life.probeAt();
  ASSERT_GT(due, now);
  life.onSent(now);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(life.onPeerStatus(false, kPto, now));
    EXPECT_EQ(life.probeAt(), due);
    EXPECT_FALSE(life.owesPing());
  }
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(life.onPeerStatus(true, kPto, now));
    EXPECT_EQ(life.probeAt(), kNever);
    EXPECT_FALSE(life.owesPing());
  }
}

TEST_F(SubflowLifeTest, AProofEndsARefusal) {
  life.onPeerStatus(true, kPto, now);
  EXPECT_EQ(life.state(), State::kValidating);
  EXPECT_TRUE(life.onProven());
  ASSERT_FALSE(pto());
  ASSERT_TRUE(pto());
  EXPECT_EQ(life.probeAt(), now);
  EXPECT_TRUE(life.onAck(now, true));
}

TEST_F(SubflowLifeTest, OnANewRouteASuspectPathIsProbedAtOnce) {
  makeSuspect();
  probe();
  ASSERT_GT(life.probeAt(), now);
  life.onNewRoute(now);
  EXPECT_EQ(life.probeAt(), now);
}

TEST_F(SubflowLifeTest, AClosedOneComesBackWhenItsNewRouteIsProven) {
  life.onProven();
  EXPECT_FALSE(life.reopen()) << "it is not closed";
  life.requestPing();
  EXPECT_TRUE(life.close());
  EXPECT_FALSE(life.owesPing());
  EXPECT_FALSE(life.isUnproven()) << "there is no route";
  EXPECT_TRUE(life.reopen());
  EXPECT_TRUE(life.isUnproven());
  EXPECT_FALSE(life.close()) << "it is still closed";
  EXPECT_FALSE(life.isUnproven());
  EXPECT_TRUE(life.reopen());
  EXPECT_TRUE(life.onProven());
  EXPECT_TRUE(life.isUsable());
}

TEST_F(SubflowLifeTest, HasAnotherNameWhenItHasLongBeenSuspect) {
  EXPECT_STREQ(life.name(now), "validating");
  makeSuspect();
  EXPECT_STREQ(life.name(now), "suspect");
  EXPECT_STREQ(life.name(now + 11s), "failed");
  life.onAck(now, true);
  EXPECT_STREQ(life.name(now + 11s), "active");
  life.close();
  EXPECT_STREQ(life.name(now), "closed");
  life.reopen();
  EXPECT_STREQ(life.name(now), "validating") << "its uplink is back";
}

/// With what is in flight.
struct PtoTest : SubflowLifeTest {
  DataLedger ledger{3s};
  Flight flight{ledger, now};
  PathEstimate path{now};

  void SetUp() override {
    path.onRtt(kRtt, {}, now);  // so the variation is half of it
    life.onProven();
  }
  Time due() const { return life.ptoDeadline(flight, path, kPto); }
};

TEST_F(PtoTest, NeedsSomethingInFlightOnAnActivePath) {
  EXPECT_EQ(due(), kNever);
  flight.push(1000, true, now);
  EXPECT_EQ(due(), now + kPto);
  life.close();
  EXPECT_EQ(due(), kNever);
}

TEST_F(PtoTest, RunsAfterAQuestionUntilSomethingIsHeardWhateverAnotherPathAcknowledges) {
  life.ask(now);
  EXPECT_EQ(due(), now + kPto);
  life.onSent(now);
  EXPECT_FALSE(life.onAck(now, false));
  EXPECT_EQ(due(), now + kPto);
  EXPECT_FALSE(life.onPto(kPto, kNever, now + kPto));
  EXPECT_FALSE(life.onAck(now + kPto, false));
  EXPECT_EQ(due(), now + 2 * kPto);
  life.onPacket(kPto, now + 2 * kPto);
  EXPECT_EQ(due(), kNever);
  EXPECT_FALSE(life.isSilent());
  life.ask(now);
  EXPECT_FALSE(life.onPto(kPto, kNever, now + kPto));
  EXPECT_TRUE(life.onPto(kPto, kNever, now + 2 * kPto));
  EXPECT_EQ(life.state(), State::kSuspect);
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

// Found by review: with pauses that only double, the PTO that makes the path suspect came up to 8 ms later.
TEST_F(PtoTest, AtAnyRttADeadFabricPathIsSuspectSoonAfterTheSilenceThatThisTakes) {
  for (Duration rtt : {100us, 240us, 700us, 1000us, 1080us, 1100us, 1900us, 2000us, 4000us}) {
    SCOPED_TRACE(toMilliseconds(rtt));
    path = PathEstimate(now);
    for (int i = 0; i < 100; ++i) path.onRtt(rtt, {}, now);
    life = {};
    life.onProven();
    Flight dead{ledger, now};
    dead.push(1000, true, now);
    Time began = now, at = now;
    int pings = 0;
    for (bool suspect = false; !suspect && pings < 100; ++pings, life.onSent(now)) {
      Time next = life.ptoDeadline(dead, path, path.pto());
      ASSERT_GE(next - at, 1ms) << "no storm";
      at = next;
      suspect = life.onPto(path.pto(), dead.progressAt(), at);
    }
    EXPECT_EQ(life.state(), State::kSuspect);
    EXPECT_GE(at - began, SubflowLife::kSuspectSilence);
    EXPECT_LE(at - began, SubflowLife::kSuspectSilence + path.pto());
    EXPECT_LE(pings, 5);
  }
}

TEST_F(PtoTest, APeerThatIsSlowToAcknowledgeIsGivenItsTime) {
  path = PathEstimate(now);
  for (int i = 0; i < 100; ++i) path.onRtt(240us, {}, now);
  flight.push(1000, true, now);
  Time quick = life.ptoDeadline(flight, path, 2ms);
  path.onRtt(4240us, 4ms, now);
  EXPECT_EQ(life.ptoDeadline(flight, path, 2ms), quick + 3ms) << "for the granularity of 1 ms";
}

TEST_F(PtoTest, ThoseOfAnotherRouteAreForgotten) {
  flight.push(1000, true, now);
  pto();
  life.forgetPtos();
  EXPECT_FALSE(life.isSilent());
  EXPECT_EQ(due(), now + kPto);
  EXPECT_FALSE(pto());
}

// A lost tail of a flow waits for it: 15 ms would be sixty round trips.
TEST_F(PtoTest, OnAFabricItComesAfterAFewMilliseconds) {
  path = PathEstimate(now);
  for (int i = 0; i < 100; ++i) path.onRtt(240us, {}, now);
  flight.push(1000, true, now);
  EXPECT_EQ(life.ptoDeadline(flight, path, 2ms), now + PathEstimate::kLeastQuiet + 1ms);
  path = PathEstimate(now);
  for (int i = 0; i < 100; ++i) path.onRtt(1500us, {}, now);
  EXPECT_EQ(life.ptoDeadline(flight, path, 2ms), now + 6ms + 1500us)
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
