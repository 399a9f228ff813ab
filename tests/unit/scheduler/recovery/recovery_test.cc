#include "scheduler/recovery/recovery.h"

#include <gtest/gtest.h>

#include <optional>
#include <string_view>
#include <vector>

#include "scheduler/recovery/cofuso.h"
#include "scheduler/recovery/fuso.h"
#include "scheduler/recovery/rivals/gentle_aggression.h"

namespace braid::recovery_test {
namespace {

template <typename Policy>
bool makes(std::string_view name) {
  const auto policy = makeRecoveryPolicy(name, {}, 1);
  return dynamic_cast<Policy*>(policy.get()) != nullptr;
}

TEST(MakeRecoveryPolicy, KnowsEachPolicyByName) {
  EXPECT_TRUE(makes<NoRecovery>("none"));
  EXPECT_TRUE(makes<Fuso>("fuso"));
  EXPECT_TRUE(makes<CoFuso>("cofuso"));
  EXPECT_TRUE(makes<Redundant>("redundant"));
  EXPECT_TRUE(makes<Proactive>("proactive"));
  EXPECT_TRUE(makes<Reactive>("reactive"));
  EXPECT_TRUE(makes<Corrective>("corrective"));
}

TEST(MakeRecoveryPolicy, UnknownNameMakesNothing) {
  EXPECT_EQ(makeRecoveryPolicy("", {}, 1), nullptr);
  EXPECT_EQ(makeRecoveryPolicy("FUSO", {}, 1), nullptr);
  EXPECT_EQ(makeRecoveryPolicy("fuso ", {}, 1), nullptr);
}

TEST(MakeRecoveryPolicy, PoliciesOfThePapersRepairOnTheirOwnPathAndTakeNoTurns) {
  for (auto name : {"none", "fuso", "cofuso", "redundant", "proactive", "reactive", "corrective"}) {
    const auto policy = makeRecoveryPolicy(name, {}, 1);
    EXPECT_EQ(policy->repairPlace(), RepairPlace::kOwnPath) << name;
    EXPECT_FALSE(policy->takesTurns()) << name;
    EXPECT_EQ(policy->nextDeadline(), kNever) << name;
  }
}

TEST(MakeRecoveryPolicy, OnlyRedundantAndProactiveDuplicate) {
  for (auto name : {"none", "fuso", "cofuso", "reactive", "corrective"}) {
    EXPECT_EQ(makeRecoveryPolicy(name, {}, 1)->duplication(), Duplication::kNone) << name;
  }
  EXPECT_EQ(makeRecoveryPolicy("redundant", {}, 1)->duplication(), Duplication::kOtherPath);
  EXPECT_EQ(makeRecoveryPolicy("proactive", {}, 1)->duplication(), Duplication::kSamePath);
}

TEST(MakeRecoveryPolicy, HandsTheOptionsOn) {
  RecoveryOptions options;
  options.kMax = 5;
  const RecoveryPath path{.usable = true,
                          .open = true,
                          .srtt = 10ms,
                          .window = 9,
                          .sent = 9,
                          .uncopied = 9,
                          .uncoded = 9};
  const auto block =
      makeRecoveryPolicy("cofuso", options, 1)->choose({.paths = {&path, 1}, .now = Time{}});
  ASSERT_TRUE(block);
  EXPECT_EQ(block->symbols, 5u);
}

TEST(LossMetric, ZeroWithoutLoss) {
  EXPECT_EQ(lossMetric({}, 0.5, 0.5), 0);
  EXPECT_EQ(lossMetric({.sent = 1000}, 0.5, 0.5), 0);
}

// 4 of 200 lost, the last one 9 packets ago: rates 0.02 and 1/10.
TEST(LossMetric, IsTheWeightedSumOfOverallAndLastLossRate) {
  const RecoveryPath path{.sent = 200, .lost = 4, .sinceLoss = 10};
  EXPECT_DOUBLE_EQ(lossMetric(path, 0.5, 0.5), 0.06);
  EXPECT_DOUBLE_EQ(lossMetric(path, 1, 0), 0.02);
  EXPECT_DOUBLE_EQ(lossMetric(path, 0, 1), 0.1);
  EXPECT_DOUBLE_EQ(lossMetric(path, 0.05, 0.95),
                   0.096);  // the weights of CoFUSO's testbed, section 5.2
}

TEST(LossMetric, LastLossRateIsOneRightAfterALoss) {
  EXPECT_DOUBLE_EQ(lossMetric({.sent = 100, .lost = 1, .sinceLoss = 1}, 0.5, 0.5), 0.505);
}

TEST(LossMetric, LossesThatAllProvedSpuriousCountAsNone) {
  EXPECT_EQ(lossMetric({.sent = 100, .lost = 0, .sinceLoss = 3}, 0.5, 0.5), 0);
}

TEST(LossMetric, NeverAboveTheSumOfTheWeights) {
  EXPECT_DOUBLE_EQ(lossMetric({.sent = 3, .lost = 7, .sinceLoss = 1}, 0.5, 0.5), 1);
  EXPECT_EQ(lossMetric({.sent = 0, .lost = 7, .sinceLoss = 1}, 0.5, 0.5), 0);
}

TEST(MaxParities, WithoutMeasurementTheSettingHolds) {
  RecoveryOptions options;
  for (size_t m : {1, 3, 16}) {
    options.mMax = m;
    EXPECT_EQ(maxParities(options, 1ms), m);
    EXPECT_EQ(maxParities(options, 0ms), m);
  }
}

TEST(MaxParities, SettingOutOfRangeIsClamped) {
  RecoveryOptions options;
  options.mMax = 0;
  EXPECT_EQ(maxParities(options, 1ms), 1u);
  options.mMax = 99;
  EXPECT_EQ(maxParities(options, 1ms), 16u);
}

// 100 us for each symbol restored. RTT/4 of 1 ms is 250 us: two fit, three do not.
TEST(MaxParities, DecodingTakesLessThanAQuarterOfTheRtt) {
  RecoveryOptions options;
  options.mMax = 16;
  for (size_t i = 0; i < 16; ++i) options.decodeTime[i] = (i + 1) * 100us;
  EXPECT_EQ(maxParities(options, 1ms), 2u);
  EXPECT_EQ(maxParities(options, 2ms), 4u);
  EXPECT_EQ(maxParities(options, 50ms), 16u);
}

TEST(MaxParities, ExactlyAQuarterOfTheRttIsTooLong) {
  RecoveryOptions options;
  options.decodeTime = {100us, 200us, 300us};
  EXPECT_EQ(maxParities(options, 1200us), 2u);
  EXPECT_EQ(maxParities(options, 1201us), 3u);
}

TEST(MaxParities, OneEvenWhenDecodingIsSlowerThanThePath) {
  RecoveryOptions options;
  options.decodeTime = {1ms, 2ms, 3ms};
  EXPECT_EQ(maxParities(options, 280us), 1u);
  EXPECT_EQ(maxParities(options, 0us), 1u);
}

TEST(MaxParities, TheLargestThatFitsCountsAlsoWhenASmallerOneMeasuredSlower) {
  RecoveryOptions options;
  options.decodeTime = {100us, 900us, 200us};
  EXPECT_EQ(maxParities(options, 1ms), 3u);
}

// ---- paths that share an uplink

/// A lossy path 0 with unprotected packets, and a better path 1 of the same uplink; path 2, of
/// another uplink, is not quite as good as path 1.
std::vector<RecoveryPath> twoUplinks() {
  RecoveryPath lossy{.usable = true,
                     .open = true,
                     .srtt = 40ms,
                     .window = 1'000'000,
                     .sent = 1'000'000,
                     .lost = 200'000,
                     .sinceLoss = 5,
                     .recentRate = 0.2,
                     .recentPackets = 1e6,
                     .burst = 3,
                     .uplink = 1,
                     .uncopied = 9,
                     .uncoded = 9,
                     .unacked = 9};
  RecoveryPath sibling{.usable = true,
                       .open = true,
                       .srtt = 41ms,
                       .window = 1'000'000,
                       .sent = 1'000'000,
                       .recentPackets = 1e6,
                       .uplink = 1};
  RecoveryPath other = sibling;
  other.srtt = 45ms;
  other.uplink = 2;
  return {lossy, sibling, other};
}

std::optional<size_t> pathFor(const char* name, const std::vector<RecoveryPath>& paths,
                              size_t paritiesLeft = 0, size_t blockOf = 0) {
  auto protection = makeRecoveryPolicy(name, {}, 1)
                        ->choose({.paths = paths,
                                  .now = Time{1s},
                                  .ended = true,
                                  .paritiesLeft = paritiesLeft,
                                  .blockOf = blockOf});
  return protection ? std::optional(protection->on) : std::nullopt;
}

TEST(ProtectingPaths, AreOfAnotherUplinkIfOneIsUsable) {
  for (const char* name : {"fuso", "cofuso", "adaptive"}) {
    std::vector<RecoveryPath> paths = twoUplinks();
    EXPECT_EQ(pathFor(name, paths), 2u) << name;
    paths[2].open = false;
    EXPECT_EQ(pathFor(name, paths), 0u) << name << ": its own path is no worse than its sibling";
    paths[2].usable = false;
    EXPECT_EQ(pathFor(name, paths), 1u) << name << ": there is no other uplink";
    paths = twoUplinks();
    paths[1].uplink = 3;
    EXPECT_EQ(pathFor(name, paths), 1u) << name << ": each path has its own uplink";
  }
}

TEST(ProtectingPaths, HoldForAllParitiesOfABlock) {
  for (const char* name : {"cofuso", "adaptive"}) {
    std::vector<RecoveryPath> paths = twoUplinks();
    paths[0].uncoded = paths[0].uncopied = 0;  // they are in the block
    EXPECT_EQ(pathFor(name, paths, 2), 2u) << name;
    paths[0].lost = 0;  // it is as good as its sibling now
    paths[0].recentRate = 0;
    EXPECT_EQ(pathFor(name, paths, 2, 2), 0u) << name << ": a block of the other uplink's path";
  }
}

}  // namespace
}  // namespace braid::recovery_test
