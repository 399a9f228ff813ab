#include "simnet/wake_list.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"

namespace braid::wake_list_test {
namespace {

using sim::WakeList;

struct Members {
  explicit Members(size_t n) : wishes(n, kNever) {
    for (size_t i = 0; i < n; ++i) list.add();
  }
  auto wanted() {
    return [this](size_t i) { return wishes[i]; };
  }
  void wish(size_t i, Time when) {
    wishes[i] = when;
    list.arm(i, when);
  }
  WakeList list;
  std::vector<Time> wishes;
};
Time at(int64_t us) {
  return Time{} + std::chrono::microseconds(us);
}

TEST(WakeList, GoesThroughThoseThatAreDueInOrder) {
  Members m(200);
  for (size_t i : {130u, 3u, 64u}) m.list.mark(i);
  std::vector<size_t> seen;
  for (size_t i = m.list.next(0); i < m.list.size(); i = m.list.next(i + 1)) seen.push_back(i);
  EXPECT_EQ(seen, (std::vector<size_t>{3, 64, 130}));
  m.list.clear(64);
  EXPECT_EQ(m.list.next(4), 130u);
  EXPECT_EQ(m.list.next(131), 200u);
}

TEST(WakeList, AWishThatMovedLaterIsNotDueBefore) {
  Members m(2);
  m.wish(0, at(10));
  m.wish(0, at(30));
  EXPECT_EQ(m.list.nextTime(m.wanted()), at(30));
  m.list.collect(at(20), m.wanted());
  EXPECT_EQ(m.list.next(0), 2u);
}

TEST(WakeList, AWishThatMovedEarlierIsDueThen) {
  Members m(2);
  m.wish(1, at(30));
  m.wish(1, at(10));
  EXPECT_EQ(m.list.nextTime(m.wanted()), at(10));
  m.list.collect(at(10), m.wanted());
  EXPECT_EQ(m.list.next(0), 1u);
}

// Compared with a plain search over all members, with deadlines that move in both directions.
TEST(WakeList, AgreesWithASearchOverAll) {
  Random random(7);
  Members m(70);
  int64_t now = 0;
  for (int step = 0; step < 20000; ++step) {
    size_t i = random.below(70);
    m.wish(i, random.chance(0.1) ? kNever : at(now + 1 + static_cast<int64_t>(random.below(50))));
    Time least = *std::ranges::min_element(m.wishes);
    ASSERT_EQ(m.list.nextTime(m.wanted()), least);
    if (least == kNever || random.chance(0.5)) continue;
    now = std::chrono::duration_cast<std::chrono::microseconds>(least - Time{}).count();
    m.list.collect(least, m.wanted());
    for (size_t j = 0; j < 70; ++j) {
      ASSERT_EQ(m.list.next(j) == j, m.wishes[j] == least) << j;
      if (m.wishes[j] != least) continue;
      m.list.clear(j);
      m.wishes[j] = kNever;
    }
  }
}

}  // namespace
}  // namespace braid::wake_list_test
