// A few runs of sim_tokens.

#include <gtest/gtest.h>

#include "tests/sim/tokens_run.h"

namespace braid::sim::tokens_test {
namespace {

TEST(Tokens, NobodyGetsAnythingByGuessingOrFromElsewhere) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    TokensResult r = tokensRun(seed);
    EXPECT_EQ(r.broken, "") << "seed " << seed;
    EXPECT_EQ(r.predictedAccepted, 0u) << "seed " << seed;
    EXPECT_EQ(r.strayAccepted, 0u) << "seed " << seed;
    EXPECT_EQ(r.bytesBeyond, 0u) << "seed " << seed;
    EXPECT_GT(r.predictions, 0u);
    EXPECT_GT(r.strayAnswers, 0u);
    EXPECT_GT(r.bytesToThere, 0u) << "addresses are asked";
  }
}

TEST(Tokens, TheGeneratorOfBeforeIsForeseen) {
  EXPECT_EQ(foreseenOfRandom(1000), 1000u);
}

}  // namespace
}  // namespace braid::sim::tokens_test
