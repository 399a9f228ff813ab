#include "tunnel/subflow/sent_map.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "tests/unit/tunnel/wire/number_literals.h"

namespace braid::skipped_numbers_test {
namespace {

struct SkippedNumbersTest : testing::Test {
  SecretRandom random{knownKey(1)};
  PacketNumberFilter skipped{random};

  /// The first skipped packet number from `pn` on.
  PacketNumber skip(PacketNumber pn) {
    while (!skipped.isDue(pn)) ++pn;
    skipped.onSkipped(pn);
    return pn;
  }
  /// An ACK of these ranges, from the largest down.
  static AckFrame ackOf(std::vector<AckFrame::Range> ranges) {
    AckFrame ack;
    for (const AckFrame::Range& r : ranges) ack.ranges[ack.count++] = r;
    return ack;
  }
};

TEST_F(SkippedNumbersTest, DistancesAreBoundedAndDiffer) {
  std::set<uint64_t> seen;
  uint64_t sum = 0;
  PacketNumber last{};
  for (int i = 0; i < 1000; ++i) {
    PacketNumber pn = skip(last + 1);
    EXPECT_GE(pn - last, PacketNumberFilter::kLeast);
    EXPECT_LE(pn - last, PacketNumberFilter::kMost);
    seen.insert(pn - last);
    sum += pn - last;
    last = pn;
  }
  EXPECT_GT(seen.size(), 900u);
  EXPECT_NEAR(static_cast<double>(sum) / 1000, PacketNumberFilter::kMost / 2.0,
              PacketNumberFilter::kMost / 20.0);
}

TEST_F(SkippedNumbersTest, WhatCannotBeLeftOutInTimeIsLater) {
  PacketNumber due{};
  while (!skipped.isDue(due)) ++due;
  EXPECT_TRUE(skipped.isDue(due + 100));
  skipped.onSkipped(due + 100);
  EXPECT_FALSE(skipped.isDue(due + 101));
}

TEST_F(SkippedNumbersTest, AnAckThatNamesOneIsKnown) {
  PacketNumber first = skip(0_pn);
  PacketNumber second = skip(first + 1);
  PacketNumber third = skip(second + 1);
  EXPECT_FALSE(skipped.isIn(ackOf({{0_pn, first - 1}})));
  EXPECT_FALSE(
      skipped.isIn(ackOf({{third + 1, third + 5}, {second + 1, third - 1}, {0_pn, first - 1}})));
  for (PacketNumber pn : {first, second, third}) {
    EXPECT_TRUE(skipped.isIn(ackOf({{pn, pn}})));
    EXPECT_TRUE(skipped.isIn(ackOf({{third + 10, third + 20}, {pn - 1, pn + 1}})));
    EXPECT_TRUE(skipped.isIn(ackOf({{0_pn, third + 1}})));
  }
}

TEST_F(SkippedNumbersTest, TheNewestAreRemembered) {
  std::vector<PacketNumber> all;
  for (size_t i = 0; i < PacketNumberFilter::kKept + 5; ++i)
    all.push_back(skip(all.empty() ? 0_pn : all.back() + 1));
  for (size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(skipped.isIn(ackOf({{all[i], all[i]}})), i >= 5) << i;
}

}  // namespace
}  // namespace braid::skipped_numbers_test
