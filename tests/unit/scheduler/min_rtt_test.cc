#include "scheduler/min_rtt.h"

#include <gtest/gtest.h>

#include <vector>

namespace braid {
namespace {

PathView path(Duration srtt, bool open) {
  return {.srtt = srtt, .window = 12000, .open = open, .usable = true};
}

TEST(MinRtt, LowestOfTheOpen) {
  MinRtt policy;
  std::vector<PathView> paths{path(30ms, true), path(10ms, false), path(20ms, true)};
  EXPECT_EQ(policy.pick(paths, 1200, 0), 2u);
  paths[1].open = true;
  EXPECT_EQ(policy.pick(paths, 1200, 0), 1u);
}

TEST(MinRtt, FirstOfEquals) {
  MinRtt policy;
  std::vector<PathView> paths{path(10ms, false), path(10ms, true), path(10ms, true)};
  EXPECT_EQ(policy.pick(paths, 1200, 0), 1u);
}

TEST(MinRtt, NoneOpen) {
  MinRtt policy;
  std::vector<PathView> paths{path(10ms, false)};
  EXPECT_EQ(policy.pick(paths, 1200, 0), std::nullopt);
  EXPECT_EQ(policy.pick({}, 1200, 0), std::nullopt);
}

}  // namespace
}  // namespace braid
