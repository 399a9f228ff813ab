#include "tunnel/subflow/path_validator.h"

#include <gtest/gtest.h>

namespace braid::path_validator_test {
namespace {

Route route(uint16_t port) {
  return {1, {}, *Endpoint::parse("192.0.2.1:" + std::to_string(port))};
}

struct PathValidatorTest : testing::Test {
  SecretRandom random{knownKey(7)};
  PathValidator validator;
  Time now{};
  static constexpr Duration kTimeout = 100ms;
};

TEST_F(PathValidatorTest, ProvesARouteByItsToken) {
  validator.start(route(1), true, kTimeout, random, now);
  ASSERT_EQ(validator.allowance(1200, now), 1200u);
  PathChallengeFrame challenge = validator.challenge(1200, now);
  PathToken wrong = challenge.token;
  wrong[0] ^= 1;
  EXPECT_FALSE(validator.onResponse(wrong));
  EXPECT_TRUE(validator.onResponse(challenge.token));
  EXPECT_FALSE(validator.running());
  EXPECT_FALSE(validator.onResponse(challenge.token));
}

TEST_F(PathValidatorTest, AnAnswerBeforeTheQuestionProvesNothing) {
  validator.start(route(1), true, kTimeout, random, now);
  EXPECT_FALSE(validator.onResponse(PathToken{}));
}

TEST_F(PathValidatorTest, SendsAStrangerAtMostThreeTimesWhatCame) {
  validator.start(route(1), false, kTimeout, random, now);
  EXPECT_EQ(validator.allowance(1200, now), 0u);
  EXPECT_EQ(validator.nextDeadline(), kNever) << "must not wake up for what it may not send";
  validator.onReceived(route(1), 100);
  EXPECT_EQ(validator.allowance(1200, now), 300u);
  validator.challenge(300, now);
  now += 10s;
  EXPECT_EQ(validator.allowance(1200, now), 0u);
  validator.onReceived(route(2), 5000);  // from elsewhere: no credit
  EXPECT_EQ(validator.allowance(1200, now), 0u);
  validator.onReceived(route(1), 1000);
  EXPECT_EQ(validator.allowance(1200, now), 1200u);
}

TEST_F(PathValidatorTest, RepeatsWithGrowingPausesAndGivesUp) {
  validator.start(route(1), true, kTimeout, random, now);
  Duration last{};
  for (int i = 0; i < PathValidator::kMaxChallenges; ++i) {
    ASSERT_GT(validator.allowance(1200, now), 0u);
    validator.challenge(1200, now);
    EXPECT_EQ(validator.allowance(1200, now), 0u);
    Duration pause = validator.nextDeadline() - now;
    EXPECT_GE(pause, last);
    last = pause;
    now = validator.nextDeadline();
    if (i + 1 < PathValidator::kMaxChallenges) {
      EXPECT_FALSE(validator.onTimer(now));
    }
  }
  EXPECT_TRUE(validator.onTimer(now));
  EXPECT_FALSE(validator.running());
}

TEST_F(PathValidatorTest, ANewerCandidateReplacesTheOld) {
  validator.start(route(1), true, kTimeout, random, now);
  PathToken old = validator.challenge(1200, now).token;
  validator.start(route(2), true, kTimeout, random, now);
  EXPECT_EQ(validator.route(), route(2));
  validator.challenge(1200, now);
  EXPECT_FALSE(validator.onResponse(old));
}

TEST_F(PathValidatorTest, MeasuresTheRttOnlyOfASingleChallenge) {
  validator.start(route(1), true, kTimeout, random, now);
  validator.challenge(1200, now);
  EXPECT_EQ(validator.rtt(now + 30ms), 30ms);
  now += 1s;
  validator.challenge(1200, now);
  EXPECT_FALSE(validator.rtt(now + 30ms));
}

TEST_F(PathValidatorTest, PausesDoubleTwiceAndStayThere) {
  validator.start(route(1), true, kTimeout, random, now);
  for (int factor : {1, 2, 4, 4, 4, 4, 4, 4}) {
    validator.challenge(1200, now);
    EXPECT_EQ(validator.nextDeadline() - now, factor * kTimeout);
    now = validator.nextDeadline();
  }
  EXPECT_TRUE(validator.onTimer(now));
}

TEST_F(PathValidatorTest, AStrangerGetsTwoLargeChallengesAndSmallOnesThen) {
  validator.start(route(1), false, kTimeout, random, now);
  validator.onReceived(route(1), 1200);
  uint64_t sent = 0;
  for (int i = 0; i < PathValidator::kMaxChallenges; ++i) {
    size_t size = validator.allowance(1200, now);
    EXPECT_EQ(size, i < PathValidator::kLargeChallenges ? 1200 : PathValidator::kSmallestChallenge) << i;
    validator.challenge(size, now);
    sent += size;
    now = validator.nextDeadline();
  }
  EXPECT_LE(sent, 1200 * PathValidator::kAmplification);
}

TEST_F(PathValidatorTest, ATrustedAddressGetsLargeOnesOnly) {
  validator.start(route(1), true, kTimeout, random, now);
  for (int i = 0; i < PathValidator::kMaxChallenges; ++i) {
    EXPECT_EQ(validator.allowance(1200, now), 1200u);
    validator.challenge(1200, now);
    now = validator.nextDeadline();
  }
}

TEST_F(PathValidatorTest, BelowTheSmallestChallengeNothingGoes) {
  validator.start(route(1), false, kTimeout, random, now);
  validator.onReceived(route(1), (PathValidator::kSmallestChallenge - 1) / 3);
  EXPECT_EQ(validator.allowance(1200, now), 0u);
  EXPECT_EQ(validator.nextDeadline(), kNever);
  validator.onReceived(route(1), 1);
  EXPECT_GE(validator.allowance(1200, now), PathValidator::kSmallestChallenge);
}

}  // namespace
}  // namespace braid::path_validator_test
