#include "scheduler/path/path_scheduler.h"

#include <gtest/gtest.h>

#include <span>
#include <vector>

namespace braid::weighted_test {
namespace {

constexpr uint64_t kBytes = 1500;

PathView path(unsigned weight, uint16_t uplink, Duration srtt = 10ms) {
  return {.srtt = srtt, .open = true, .usable = true, .weight = weight, .uplink = uplink};
}

std::optional<size_t> pick(Weighted& policy, std::span<const PathView> paths) {
  FlowPatience patience;
  return policy.pick(paths, {.bytes = kBytes}, patience, Time{});
}

/// Sends `datagrams` datagrams and returns how many each path got.
std::vector<uint64_t> send(Weighted& policy, std::vector<PathView>& paths, int datagrams) {
  std::vector<uint64_t> got(paths.size());
  for (int i = 0; i < datagrams; ++i) {
    std::optional<size_t> choice = pick(policy, paths);
    if (!choice) continue;
    paths[*choice].sent += kBytes;
    ++got[*choice];
  }
  return got;
}

TEST(Weighted, ThreeToOne) {
  Weighted policy;
  std::vector<PathView> paths{path(3, 1), path(1, 2, 5ms)};
  EXPECT_EQ(send(policy, paths, 4000), (std::vector<uint64_t>{3000, 1000}));
}

TEST(Weighted, EqualWeightsTakeTurnsTheFasterFirst) {
  Weighted policy;
  std::vector<PathView> paths{path(1, 1, 20ms), path(1, 2, 10ms)};
  EXPECT_EQ(pick(policy, paths), 1u);
  paths[1].sent += kBytes;
  EXPECT_EQ(pick(policy, paths), 0u);
  paths[0].sent += kBytes;
  EXPECT_EQ(pick(policy, paths), 1u);
}

TEST(Weighted, AnOpenPathIsUsedWhateverItsShare) {
  Weighted policy;
  std::vector<PathView> paths{path(100, 1), path(1, 2)};
  paths[0].open = false;
  EXPECT_EQ(send(policy, paths, 100), (std::vector<uint64_t>{0, 100}));
}

TEST(Weighted, NothingOpen) {
  Weighted policy;
  std::vector<PathView> paths{path(1, 1)};
  paths[0].open = false;
  EXPECT_EQ(pick(policy, paths), std::nullopt);
  EXPECT_EQ(pick(policy, {}), std::nullopt);
}

// 64 KiB at weight 1 are 43.7 datagrams.
TEST(Weighted, WhatAPathCouldNotCarryIsMadeUpForInPartOnly) {
  Weighted policy;
  std::vector<PathView> paths{path(1, 1), path(1, 2)};
  paths[0].open = false;
  send(policy, paths, 10'000);
  paths[0].open = true;
  std::vector<uint64_t> got = send(policy, paths, 1000);
  EXPECT_EQ(got[0] - got[1], 44u);
}

TEST(Weighted, ADeadPathIsNotMadeUpForEither) {
  Weighted policy;
  std::vector<PathView> paths{path(1, 1), path(1, 2)};
  send(policy, paths, 1000);
  paths[0].open = paths[0].usable = false;
  send(policy, paths, 10'000);
  paths[0].open = paths[0].usable = true;
  std::vector<uint64_t> got = send(policy, paths, 1000);
  EXPECT_EQ(got[0] - got[1], 44u);
}

TEST(Weighted, SubflowsOfAnUplinkHaveItsShareTogether) {
  Weighted policy;
  std::vector<PathView> paths{path(1, 1), path(1, 1, 11ms), path(1, 2)};
  std::vector<uint64_t> got = send(policy, paths, 2000);
  EXPECT_EQ(got[0] + got[1], 1000u);
  EXPECT_EQ(got[2], 1000u);
  paths[0].open = false;
  got = send(policy, paths, 2000);
  EXPECT_EQ(got[1], 1000u);
}

TEST(Weighted, WhatOthersSentOnAPathCounts) {
  Weighted policy;
  std::vector<PathView> paths{path(1, 1), path(1, 2)};
  paths[0].sent = 10 * kBytes;  // repairs, protection
  EXPECT_EQ(send(policy, paths, 10), (std::vector<uint64_t>{0, 10}));
}

}  // namespace
}  // namespace braid::weighted_test
