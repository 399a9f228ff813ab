#include "tunnel/subflow/marked_numbers.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"
#include "tests/unit/tunnel/wire/number_literals.h"

namespace braid::marked_numbers_test {
namespace {

TEST(MarkedNumbers, FindsTheNextOne) {
  MarkedNumbers<4096> marks;
  EXPECT_EQ(marks.next(0_pn, 4096_pn), 4096_pn);
  marks.put(70_pn, true);
  marks.put(4000_pn, true);
  EXPECT_EQ(marks.next(0_pn, 4096_pn), 70_pn);
  EXPECT_EQ(marks.next(70_pn, 4096_pn), 70_pn);
  EXPECT_EQ(marks.next(71_pn, 4096_pn), 4000_pn);
  EXPECT_EQ(marks.next(71_pn, 4000_pn), 4000_pn) << "the end";
  EXPECT_EQ(marks.next(80_pn, 80_pn), 80_pn);
  EXPECT_EQ(marks.next(80_pn, 10_pn), 10_pn);
  marks.put(4000_pn, false);
  EXPECT_EQ(marks.next(71_pn, 4096_pn), 4096_pn);
}

// The window may begin in the middle of a word, which then holds its first numbers and its last.
TEST(MarkedNumbers, AWindowThatEndsInItsFirstWord) {
  MarkedNumbers<4096> marks;
  marks.put(4100_pn, true);
  EXPECT_EQ(marks.next(10_pn, 4106_pn), 4100_pn);
  EXPECT_EQ(marks.next(10_pn, 4100_pn), 4100_pn);
  EXPECT_EQ(marks.next(10_pn, 4099_pn), 4099_pn);
}

TEST(MarkedNumbersProperty, MatchesASet) {
  constexpr uint64_t kSpan = 4096;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    MarkedNumbers<kSpan> marks;
    std::set<uint64_t> set;
    uint64_t first = random.below(10'000);
    for (int step = 0; step < 3000; ++step) {
      uint64_t n = first + random.below(kSpan);
      bool marked = random.chance(seed % 2 ? 0.1 : 0.7);
      marks.put(PacketNumber(n), marked);
      if (marked) {
        set.insert(n);
      } else {
        set.erase(n);
      }
      for (uint64_t go = first + random.below(40); first < go; ++first) {
        marks.put(PacketNumber(first), false);
        set.erase(first);
      }
      uint64_t from = first + random.below(kSpan);
      uint64_t end = first + random.below(kSpan + 1);
      auto found = set.lower_bound(from);
      uint64_t expected = found == set.end() || *found >= end ? end : *found;
      ASSERT_EQ(marks.next(PacketNumber(from), PacketNumber(end)).value(), expected);
    }
  }
}

}  // namespace
}  // namespace braid::marked_numbers_test
