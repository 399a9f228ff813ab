#include "base/number.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

namespace braid::number_test {
namespace {

using Page = Number<struct PageTag, uint16_t>;
using Line = Number<struct LineTag, uint16_t>;

TEST(Number, IsMadeOnPurposeOnly) {
  static_assert(std::is_constructible_v<Page, uint16_t>);
  static_assert(!std::is_convertible_v<uint16_t, Page>);
  static_assert(!std::is_convertible_v<Page, uint16_t>);
  EXPECT_EQ(Page(7).value(), 7);
  EXPECT_EQ(Page{}.value(), 0);
}

template <class A, class B>
concept Mix = requires(A a, B b) {
  a == b;
}
|| requires(A a, B b) {
  a - b;
}
|| std::is_convertible_v<A, B> || std::is_constructible_v<A, B>;

TEST(Number, KindsDoNotMix) {
  static_assert(Mix<Page, Page>);
  static_assert(!Mix<Page, Line>);
}

TEST(Number, CostsWhatItsIntegerCosts) {
  static_assert(sizeof(Page) == sizeof(uint16_t));
  static_assert(std::is_trivial_v<Page>);
}

TEST(Number, IsOrderedAsItsInteger) {
  EXPECT_LT(Page(2), Page(10));
  EXPECT_GE(Page(10), Page(10));
  EXPECT_EQ(Page(3), Page(3));
  EXPECT_NE(Page(3), Page(4));
  EXPECT_EQ(std::max(Page(2), Page(10)), Page(10));
}

TEST(Number, CountsUp) {
  Page page(5);
  EXPECT_EQ(page++, Page(5));
  EXPECT_EQ(page, Page(6));
  EXPECT_EQ(++page, Page(7));
  page += 3;
  EXPECT_EQ(page, Page(10));
}

TEST(Number, DiffersByAnInteger) {
  EXPECT_EQ(Page(5) + 4, Page(9));
  EXPECT_EQ(Page(9) - 4, Page(5));
  EXPECT_EQ(Page(9) - Page(5), 4);
}

TEST(Number, WrapsAsItsIntegerDoes) {
  EXPECT_EQ(Page(65535) + 1, Page(0));
  EXPECT_EQ(Page(0) - 1, Page(65535));
  EXPECT_EQ(Page(2) - Page(65533), 5);
  Page last(65535);
  EXPECT_EQ(++last, Page(0));
}

}  // namespace
}  // namespace braid::number_test
