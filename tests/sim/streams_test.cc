// The first runs of sim_streams, for builds with sanitizers; the optimised build has more.

#include <gtest/gtest.h>

#include "tests/sim/stream_run.h"

namespace braid::sim::streams_test {
namespace {

class Streams : public testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, Streams, testing::Range(uint64_t{1}, uint64_t{23}));

TEST_P(Streams, ComeToTheirEndsWithEveryByte) {
  StreamRunResult result = streamRun(GetParam());
  EXPECT_EQ(result.failure, "") << result.story;
  EXPECT_GT(result.streams, 0u);
  EXPECT_GE(2 * result.troubled, result.streams)
      << "half of them are to be reset, half-closed or stalled";
}

}  // namespace
}  // namespace braid::sim::streams_test
