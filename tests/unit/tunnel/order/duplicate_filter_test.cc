#include "tunnel/order/duplicate_filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/random.h"
#include "tests/unit/tunnel/wire/number_literals.h"

namespace braid::duplicate_filter_test {
namespace {

TEST(DuplicateFilter, OnceInAnyOrder) {
  DuplicateFilter filter;
  EXPECT_EQ(filter.next(), 0_dsn);
  for (Dsn dsn : {5_dsn, 3_dsn, 4_dsn, 0_dsn, 9_dsn})
    EXPECT_TRUE(filter.accept(dsn)) << dsn.value();
  for (Dsn dsn : {5_dsn, 3_dsn, 4_dsn, 0_dsn, 9_dsn})
    EXPECT_FALSE(filter.accept(dsn)) << dsn.value();
  EXPECT_TRUE(filter.accept(1_dsn));
  EXPECT_EQ(filter.next(), 10_dsn);
}

TEST(DuplicateFilter, TooOldCountsAsDuplicate) {
  RecordProperty("rule", "data.dsn");
  DuplicateFilter filter;
  ASSERT_TRUE(filter.accept(5000_dsn));
  EXPECT_TRUE(filter.accept(5001_dsn - DeliveryHistory::kWindow));
  EXPECT_FALSE(filter.accept(5000_dsn - DeliveryHistory::kWindow));
}

// A DATA frame of ten bytes may name any DSN.
TEST(DeliveryHistory, AJumpCostsWordsNotNumbers) {
  DeliveryHistory history;
  EXPECT_EQ(history.advance(31_dsn), 1u);
  EXPECT_EQ(history.advance(31_dsn + (DeliveryHistory::kWindow - 1)),
            DeliveryHistory::kWindow / 64 + 1);
  EXPECT_EQ(history.advance(Dsn(uint64_t{1} << 40)), 16u);
}

TEST(DuplicateFilterProperty, MatchesASet) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    DuplicateFilter filter;
    std::set<uint64_t> seen;
    uint64_t base = 0;
    uint64_t next = 0;
    for (int step = 0; step < 5000; ++step) {
      base += random.chance(0.01) ? random.below(2000) : random.below(3);
      uint64_t back = random.below(random.chance(0.1) ? 1200 : 20);
      uint64_t dsn = base > back ? base - back : 0;
      bool known = next > dsn && next - dsn > DeliveryHistory::kWindow;
      ASSERT_EQ(filter.accept(Dsn(dsn)), !known && seen.insert(dsn).second) << dsn;
      next = std::max(next, dsn + 1);
      ASSERT_EQ(filter.next(), Dsn(next));
    }
  }
}

}  // namespace
}  // namespace braid::duplicate_filter_test
