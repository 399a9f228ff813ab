#include "scheduler/path/path_scheduler.h"

#include <gtest/gtest.h>

#include <vector>

namespace braid::min_rtt_test {
namespace {

PathView path(Duration srtt, bool open) {
  return {.srtt = srtt, .window = 12000, .open = open, .usable = true};
}

std::optional<size_t> pick(std::span<const PathView> paths) {
  MinRtt policy;
  FlowPatience patience;
  return policy.pick(paths, {.bytes = 1200}, patience, Time{});
}

TEST(MinRtt, LowestOfTheOpen) {
  std::vector<PathView> paths{path(30ms, true), path(10ms, false), path(20ms, true)};
  EXPECT_EQ(pick(paths), 2u);
  paths[1].open = true;
  EXPECT_EQ(pick(paths), 1u);
}

TEST(MinRtt, FirstOfEquals) {
  std::vector<PathView> paths{path(10ms, false), path(10ms, true), path(10ms, true)};
  EXPECT_EQ(pick(paths), 1u);
}

TEST(MinRtt, NoneOpen) {
  std::vector<PathView> paths{path(10ms, false)};
  EXPECT_EQ(pick(paths), std::nullopt);
  EXPECT_EQ(pick({}), std::nullopt);
}

}  // namespace
}  // namespace braid::min_rtt_test
