// The first runs of sim_chaos, for builds with sanitizers; the optimised build has ten times as
// many.

#include <gtest/gtest.h>

#include "tests/sim/chaos_run.h"

namespace braid::sim::chaos_test {
namespace {

class Chaos : public testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, Chaos, testing::Range(uint64_t{1}, uint64_t{31}));

TEST_P(Chaos, ComesToAGoodEnd) {
  ChaosResult result = chaosRun(GetParam());
  EXPECT_EQ(result.failure, "") << result.story;
}

}  // namespace
}  // namespace braid::sim::chaos_test
