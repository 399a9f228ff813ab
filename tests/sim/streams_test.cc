// The first runs of sim_streams, for builds with sanitizers; the optimised build has more.

#include <gtest/gtest.h>

#include "tests/sim/stream_run.h"

namespace braid::sim::streams_test {
namespace {

class Streams : public testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, Streams, testing::Range(uint64_t{1}, uint64_t{21}));
// Found a fault once.
INSTANTIATE_TEST_SUITE_P(Found, Streams, testing::Values(1074, 2303));

TEST_P(Streams, ComeToTheirEndsWithEveryByte) {
  StreamRunResult result = streamRun(GetParam());
  EXPECT_EQ(result.failure, "") << result.story;
  EXPECT_GT(result.streams, 0u);
}

}  // namespace
}  // namespace braid::sim::streams_test
