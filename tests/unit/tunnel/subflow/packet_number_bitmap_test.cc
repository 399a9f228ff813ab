#include "tunnel/subflow/sent_map.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"
#include "tests/unit/tunnel/wire/number_literals.h"

namespace braid::packet_number_bitmap_test {
namespace {

TEST(PacketNumberBitmap, FindsTheNextOne) {
  PacketNumberBitmap marks(4096);
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
TEST(PacketNumberBitmap, AWindowThatEndsInItsFirstWord) {
  PacketNumberBitmap marks(4096);
  marks.put(4100_pn, true);
  EXPECT_EQ(marks.next(10_pn, 4106_pn), 4100_pn);
  EXPECT_EQ(marks.next(10_pn, 4100_pn), 4100_pn);
  EXPECT_EQ(marks.next(10_pn, 4099_pn), 4099_pn);
}

// A window of one word, which holds its first numbers and its last.
TEST(PacketNumberBitmap, TheShortestWindow) {
  PacketNumberBitmap marks(64);
  marks.put(70_pn, true);
  EXPECT_EQ(marks.next(10_pn, 74_pn), 70_pn);
  EXPECT_EQ(marks.next(71_pn, 74_pn), 74_pn);
  marks.put(12_pn, true);
  EXPECT_EQ(marks.next(10_pn, 74_pn), 12_pn);
  EXPECT_EQ(marks.next(13_pn, 74_pn), 70_pn);
  marks.put(70_pn, false);
  EXPECT_EQ(marks.next(20_pn, 74_pn), 74_pn) << "12 is not 76";
}

TEST(PacketNumberBitmap, AWiderWindowHasTheSameMarks) {
  PacketNumberBitmap marks(64);
  marks.put(101_pn, true);
  marks.put(163_pn, true);
  marks.widen(100_pn, 164_pn);
  EXPECT_EQ(marks.span(), 128u);
  EXPECT_EQ(marks.next(100_pn, 228_pn), 101_pn);
  EXPECT_EQ(marks.next(102_pn, 228_pn), 163_pn);
  EXPECT_EQ(marks.next(164_pn, 228_pn), 228_pn);
  marks.put(227_pn, true);
  EXPECT_EQ(marks.next(164_pn, 228_pn), 227_pn);
}

TEST(PacketNumberBitmapProperty, MatchesASet) {
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    uint64_t span = uint64_t{64} << seed % 8;  // 64 to 8192, and wider later
    PacketNumberBitmap marks(span);
    std::set<uint64_t> set;
    uint64_t first = random.below(10'000);
    for (int step = 0; step < 3000; ++step) {
      if (step % 1200 == 1199) {
        marks.widen(PacketNumber(first), PacketNumber(first + span));
        span *= 2;
      }
      uint64_t n = first + random.below(span);
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
      uint64_t from = first + random.below(span);
      uint64_t end = first + random.below(span + 1);
      auto found = set.lower_bound(from);
      uint64_t expected = found == set.end() || *found >= end ? end : *found;
      ASSERT_EQ(marks.next(PacketNumber(from), PacketNumber(end)).value(), expected);
    }
  }
}

}  // namespace
}  // namespace braid::packet_number_bitmap_test
