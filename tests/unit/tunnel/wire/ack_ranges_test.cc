#include "tunnel/wire/frame_payloads.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>
#include <vector>

#include "base/random.h"
#include "tests/unit/tunnel/wire/number_literals.h"

namespace braid::ack_ranges_test {
namespace {

using Pairs = std::vector<std::pair<uint64_t, uint64_t>>;

Pairs pairs(const AckRanges& ranges) {
  Pairs out;
  for (size_t i = 0; i < ranges.size(); ++i)
    out.emplace_back(ranges.range(i).first.value(), ranges.range(i).last.value());
  return out;
}

/// The ranges of a set, largest first, at most AckRanges::kMax.
Pairs pairs(const std::set<uint64_t>& numbers) {
  Pairs out;
  for (auto it = numbers.rbegin(); it != numbers.rend(); ++it) {
    if (!out.empty() && out.back().first == *it + 1) {
      out.back().first = *it;
    } else {
      if (out.size() == AckRanges::kMax) break;
      out.emplace_back(*it, *it);
    }
  }
  return out;
}

TEST(AckRanges, InOrderIsOneRange) {
  AckRanges ranges;
  EXPECT_TRUE(ranges.empty());
  for (uint64_t pn = 0; pn < 1000; ++pn) EXPECT_TRUE(ranges.add(PacketNumber(pn)));
  EXPECT_EQ(pairs(ranges), (Pairs{{0, 999}}));
  EXPECT_EQ(ranges.largest(), 999_pn);
}

TEST(AckRanges, HoleOpensAndCloses) {
  AckRanges ranges;
  for (uint64_t pn : {1, 2, 5, 6}) ranges.add(PacketNumber(pn));
  EXPECT_EQ(pairs(ranges), (Pairs{{5, 6}, {1, 2}}));
  EXPECT_TRUE(ranges.add(4_pn));
  EXPECT_EQ(pairs(ranges), (Pairs{{4, 6}, {1, 2}}));
  EXPECT_TRUE(ranges.add(3_pn));
  EXPECT_EQ(pairs(ranges), (Pairs{{1, 6}}));
  EXPECT_TRUE(ranges.add(0_pn));
  EXPECT_EQ(pairs(ranges), (Pairs{{0, 6}}));
}

TEST(AckRanges, DuplicateIsTold) {
  AckRanges ranges;
  for (uint64_t pn : {3, 4, 9}) ranges.add(PacketNumber(pn));
  for (uint64_t pn : {3, 4, 9}) EXPECT_FALSE(ranges.add(PacketNumber(pn)));
  EXPECT_TRUE(ranges.contains(4_pn));
  EXPECT_FALSE(ranges.contains(5_pn));
  EXPECT_FALSE(ranges.contains(2_pn));
  EXPECT_FALSE(ranges.contains(10_pn));
}

TEST(AckRanges, LowestIsForgottenFirst) {
  AckRanges ranges;
  for (uint64_t i = 1; i <= AckRanges::kMax; ++i) ranges.add(PacketNumber(i * 2));
  EXPECT_FALSE(ranges.add(0_pn)) << "it would be the lowest of too many";
  EXPECT_TRUE(ranges.add(1000_pn));
  EXPECT_EQ(ranges.size(), AckRanges::kMax);
  EXPECT_FALSE(ranges.contains(2_pn));
  EXPECT_TRUE(ranges.contains(4_pn));
  EXPECT_TRUE(ranges.add(500_pn)) << "in the middle of a full set";
  EXPECT_FALSE(ranges.contains(4_pn));
  EXPECT_TRUE(ranges.contains(6_pn));
}

TEST(AckRanges, DropBelowCutsARange) {
  AckRanges ranges;
  for (uint64_t pn : {1, 2, 5, 6, 7, 10}) ranges.add(PacketNumber(pn));
  ranges.dropBelow(6_pn);
  EXPECT_EQ(pairs(ranges), (Pairs{{10, 10}, {6, 7}}));
  ranges.dropBelow(8_pn);
  EXPECT_EQ(pairs(ranges), (Pairs{{10, 10}}));
  ranges.dropBelow(11_pn);
  EXPECT_TRUE(ranges.empty());
  EXPECT_TRUE(ranges.add(3_pn)) << "a late packet is still acknowledged";
}

TEST(AckRanges, FillsTheLargestIntoAFrame) {
  AckRanges ranges;
  AckFrame frame;
  for (uint64_t pn : {1, 2, 5}) ranges.add(PacketNumber(pn));
  ranges.fill(frame);
  ASSERT_EQ(frame.count, 2u);
  EXPECT_EQ(frame.ranges[0].first, 5_pn);
  EXPECT_EQ(frame.ranges[1].last, 2_pn);
  for (uint64_t i = 0; i < AckRanges::kMax; ++i) ranges.add(PacketNumber(100 + 2 * i));
  ranges.fill(frame);
  EXPECT_EQ(frame.count, kMaxAckRanges);
  EXPECT_EQ(frame.ranges[0].last, ranges.largest());
}

TEST(AckRangesProperty, MatchesASet) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    AckRanges ranges;
    std::set<uint64_t> model;
    uint64_t base = 0;
    for (int step = 0; step < 2000; ++step) {
      base += random.below(4);
      uint64_t back = random.chance(0.1) ? random.below(300) : random.below(8);
      uint64_t pn = base > back ? base - back : 0;
      bool fresh = model.insert(pn).second;
      Pairs want = pairs(model);
      bool kept = pn >= want.back().first;
      ASSERT_EQ(ranges.add(PacketNumber(pn)), fresh && kept) << "pn " << pn;
      model.erase(model.begin(), model.lower_bound(want.back().first));
      if (random.chance(0.01)) {
        uint64_t floor = base > 100 ? base - 100 : 0;
        ranges.dropBelow(PacketNumber(floor));
        model.erase(model.begin(), model.lower_bound(floor));
      }
      ASSERT_EQ(pairs(ranges), pairs(model));
    }
  }
}

}  // namespace
}  // namespace braid::ack_ranges_test
