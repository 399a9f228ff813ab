#include "base/timers.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/random.h"

namespace braid::deadline_heap_test {
namespace {

Time at(int64_t ms) {
  return Time{} + std::chrono::milliseconds(ms);
}

TEST(DeadlineHeapTest, AnEmptyOneNeverWakes) {
  DeadlineHeap heap;
  EXPECT_EQ(heap.first(), kNever);
  heap.resize(3);
  EXPECT_EQ(heap.first(), kNever);
  EXPECT_FALSE(heap.contains(2));
}

TEST(DeadlineHeapTest, ADeadlineMovesBothWays) {
  DeadlineHeap heap;
  heap.resize(3);
  for (uint32_t id = 0; id < 3; ++id) heap.set(id, at(10 + id));
  heap.set(2, at(1));
  EXPECT_EQ(heap.firstId(), 2u);
  heap.set(2, kNever);
  EXPECT_EQ(heap.firstId(), 0u);
  heap.remove(0);
  heap.remove(0);
  EXPECT_EQ(heap.first(), at(11));
  heap.remove(1);
  EXPECT_EQ(heap.first(), kNever);
  EXPECT_EQ(heap.size(), 1u) << "one that never comes is there all the same";
}

TEST(DeadlineHeapTest, AgreesWithALinearSearch) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    uint32_t ids = 1 + static_cast<uint32_t>(random.below(40));
    DeadlineHeap heap;
    heap.resize(ids);
    std::map<uint32_t, Time> known;
    for (int step = 0; step < 2000; ++step) {
      auto id = static_cast<uint32_t>(random.below(ids));
      if (random.chance(0.4)) {
        heap.remove(id);
        known.erase(id);
      } else {
        Time when = at(static_cast<int64_t>(random.below(30)));
        heap.set(id, when);
        known[id] = when;
      }
      Time first = kNever;
      for (const auto& [k, when] : known) first = std::min(first, when);
      ASSERT_EQ(heap.first(), first);
      ASSERT_EQ(heap.size(), known.size());
      ASSERT_EQ(heap.contains(id), known.contains(id));
      if (!known.empty()) {
        ASSERT_EQ(known.at(heap.firstId()), first);
      }
    }
  }
}

}  // namespace
}  // namespace braid::deadline_heap_test
