#include "tunnel/lane/duplicate_filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/random.h"

namespace braid::duplicate_filter_test {
namespace {

TEST(DuplicateFilter, OnceInAnyOrder) {
  DuplicateFilter filter;
  EXPECT_EQ(filter.next(), 0u);
  for (uint64_t dsn : {5, 3, 4, 0, 9}) EXPECT_TRUE(filter.accept(dsn)) << dsn;
  for (uint64_t dsn : {5, 3, 4, 0, 9}) EXPECT_FALSE(filter.accept(dsn)) << dsn;
  EXPECT_TRUE(filter.accept(1));
  EXPECT_EQ(filter.next(), 10u);
}

TEST(DuplicateFilter, TooOldCountsAsDuplicate) {
  DuplicateFilter filter;
  ASSERT_TRUE(filter.accept(5000));
  EXPECT_TRUE(filter.accept(5001 - DeliveryHistory::kWindow));
  EXPECT_FALSE(filter.accept(5000 - DeliveryHistory::kWindow));
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
      ASSERT_EQ(filter.accept(dsn), !known && seen.insert(dsn).second) << dsn;
      next = std::max(next, dsn + 1);
      ASSERT_EQ(filter.next(), next);
    }
  }
}

}  // namespace
}  // namespace braid::duplicate_filter_test
