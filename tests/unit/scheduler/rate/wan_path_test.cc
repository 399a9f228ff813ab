#include "scheduler/rate/wan_model.h"

#include <gtest/gtest.h>

#include "tests/unit/scheduler/rate/wan_samples.h"

namespace braid::wan_path_test {
namespace {

using Rate = PathModel::Rate;

AckSample sample(Duration rtt, Time now, Duration minRtt = 100ms) {
  AckSample ack;
  ack.now = now;
  ack.bytes = 1000;
  ack.rtt = ack.srtt = rtt;
  ack.minRtt = minRtt;
  ack.inFlight = 5000;
  return ack;
}

// ---- rounds

TEST(WanRounds, EndWithAnAckOfWhatWasSentAfterTheyBegan) {
  WanRounds rounds;
  AckSample first = sample(100ms, at(1s));
  first.delivered = 1000;
  rounds.begin(first);
  AckSample ack = sample(100ms, at(2s));
  ack.priorDelivered = 999;
  rounds.onAck(ack);
  EXPECT_FALSE(rounds.isEndedBy(ack));
  ack.priorDelivered = 1000;
  rounds.onAck(ack);
  EXPECT_TRUE(rounds.isEndedBy(ack));
}

TEST(WanRounds, DoNotEndWithoutAnRttSample) {
  WanRounds rounds;
  AckSample ack = sample(Duration{}, at(1s));
  rounds.onAck(ack);
  EXPECT_FALSE(rounds.isEndedBy(ack));
}

TEST(WanRounds, AddUpWhatTheyBrought) {
  WanRounds rounds;
  rounds.onAck(sample(110ms, at(1s)));
  rounds.onAck(sample(100ms, at(2s)));
  rounds.onLoss(lossOf(2, at(2s), at(2s)));
  const WanRound& round = rounds.current();
  EXPECT_EQ(round.sent(), 4000);
  EXPECT_EQ(round.rtt, 100ms);
  EXPECT_EQ(round.meanRtt(), 105ms);
  EXPECT_TRUE(round.isUsed(5000, 1));
  EXPECT_FALSE(round.isUsed(5001, 1));
}

TEST(WanRounds, BeginAnewWhenNothingElseIsInFlight) {
  WanRounds rounds;
  EXPECT_EQ(rounds.onSent(1000, 1000, at(1s)), 1s);
  rounds.onAck(sample(100ms, at(1100ms)));
  EXPECT_EQ(rounds.onSent(1000, 2000, at(2s)), 0s);
  EXPECT_EQ(rounds.current().acks, 1);
  EXPECT_EQ(rounds.onSent(1000, 1000, at(5s)), 3s);
  EXPECT_EQ(rounds.current().acks, 0);
  EXPECT_EQ(rounds.current().began, at(5s));
}

TEST(WanRounds, TheOneAfterAPauseTellsNothing) {
  WanRounds rounds;
  rounds.onPause();
  EXPECT_FALSE(rounds.isMeaningful());
  rounds.begin(sample(100ms, at(1s)));
  EXPECT_TRUE(rounds.isMeaningful());
}

// ---- the path

TEST(PathModel, TheRateIsTheMeanOfItAndTheLastRound) {
  PathModel path = pathOf(100ms, 100ms, 1e6);
  path.onRound(roundAt(2e6, 100ms, at(2s)), at(2s), Rate::kAll);
  EXPECT_DOUBLE_EQ(path.rate(), 1.5e6);
}

TEST(PathModel, ALowerBoundOnlyRaisesTheRate) {
  PathModel path = pathOf(100ms, 100ms, 1e6);
  path.onRound(roundAt(0.5e6, 100ms, at(2s)), at(2s), Rate::kAtLeast);
  EXPECT_DOUBLE_EQ(path.rate(), 1e6);
  path.onRound(roundAt(1.1e6, 100ms, at(3s)), at(3s), Rate::kAtLeast);
  EXPECT_DOUBLE_EQ(path.rate(), 1.1e6);
}

TEST(PathModel, ALoweredWindowSaysNothingOfTheRate) {
  PathModel path = pathOf(100ms, 100ms, 1e6);
  path.onRound(roundAt(2e6, 100ms, at(2s)), at(2s), Rate::kNothing);
  EXPECT_DOUBLE_EQ(path.rate(), 1e6);
  EXPECT_DOUBLE_EQ(path.arrived(), 2e6);
}

TEST(PathModel, TheHighestRateFadesInTenSeconds) {
  PathModel path = pathOf(100ms, 100ms, 1e6);
  path.onRound(roundAt(0, 100ms, at(2s)), at(2s), Rate::kAll);
  EXPECT_DOUBLE_EQ(path.highest(), 0.99e6);
  WanRound silence = roundAt(0, 100ms, at(20s));
  silence.began = at(5s);
  path.onRound(silence, at(20s), Rate::kAll);
  EXPECT_DOUBLE_EQ(path.highest(), path.rate());
}

TEST(PathModel, AnEighthOfALossyRoundIsUsualLoss) {
  PathModel path = pathOf(100ms, 100ms, 1e6);
  WanRound round = roundAt(1e6, 100ms, at(2s));
  round.lost = round.acked;
  path.onRound(round, at(2s), Rate::kAll);
  EXPECT_DOUBLE_EQ(path.loss(), 0.5 / 8);
}

TEST(PathModel, ACompetitorHidesTheBaseRttForAMinute) {
  PathModel path = pathOf(100ms, 100ms, 1e6);
  path.onAck(sample(150ms, at(60s), 140ms), true);
  EXPECT_EQ(path.base(), 100ms);
  path.onAck(sample(150ms, at(62s), 140ms), true);
  EXPECT_EQ(path.base(), 140ms);
}

TEST(PathModel, ALookCountsAsSeen) {
  PathModel path = pathOf(100ms, 100ms, 1e6);
  path.onProbe(at(9s));
  EXPECT_EQ(path.baseSeen(), at(9s));
  path.onAck(sample(150ms, at(15s), 140ms), false);
  EXPECT_EQ(path.base(), 100ms);
}

}  // namespace
}  // namespace braid::wan_path_test
