#include "ackshim/flow_table.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "base/random.h"

namespace braid::flow_index_test {
namespace {

constexpr auto kAny = [](uint32_t) { return true; };

TEST(FlowIndexTest, FindsWhatWasInsertedUntilItIsErased) {
  FlowIndex index(100);
  EXPECT_EQ(index.find(7, kAny), FlowIndex::kNone);
  index.insert(7, 42);
  EXPECT_EQ(index.find(7, kAny), 42u);
  EXPECT_EQ(index.find(7, [](uint32_t) { return false; }), FlowIndex::kNone);
  index.erase(7, 42);
  EXPECT_EQ(index.find(7, kAny), FlowIndex::kNone);
}

// 100 ids: 7 bits of an entry, the other 25 are the tag.
TEST(FlowIndexTest, AnEntryOfAnotherTagIsNotLookedAt) {
  FlowIndex index(100);
  index.insert(1 << 7, 42);
  int looked = 0;
  auto count = [&](uint32_t) { return ++looked == 0; };
  index.find(2 << 7, count);
  EXPECT_EQ(looked, 0);
  index.find(1 << 7 | 5, count);  // the low 7 bits are not compared
  EXPECT_EQ(looked, 1);
}

// All 60 ids have the same hash: they fill four buckets of 15, which wrap around at the end of the
// eight buckets.
TEST(FlowIndexTest, FullBucketsPassOnAndForgetIt) {
  FlowIndex index(64);
  constexpr uint64_t kLastBucket = 0xffffffffull << 32;
  for (uint32_t id = 0; id < 60; ++id) index.insert(kLastBucket, id);
  for (uint32_t id = 0; id < 60; ++id)
    EXPECT_EQ(index.find(kLastBucket, [&](uint32_t i) { return i == id; }), id);
  for (uint32_t id = 0; id < 59; ++id) index.erase(kLastBucket, id);
  EXPECT_EQ(index.find(kLastBucket, kAny), 59u);  // still behind three buckets, empty by now
  index.erase(kLastBucket, 59);
  int looked = 0;
  index.find(kLastBucket, [&](uint32_t) { return ++looked == 0; });
  EXPECT_EQ(looked, 0);
}

TEST(FlowIndexTest, OneIdAndTagsOfAllOnes) {
  FlowIndex index(1);
  EXPECT_EQ(index.find(UINT64_MAX, kAny), FlowIndex::kNone);  // an empty place has all bits
  index.insert(UINT64_MAX, 0);
  EXPECT_EQ(index.find(UINT64_MAX, kAny), 0u);
}

// 20,000 steps compared with a plain map. Half of the time all ids are in use; the hashes map to
// few buckets.
TEST(FlowIndexTest, AgreesWithAMap) {
  constexpr uint32_t kIds = 200;
  Random random(5);
  FlowIndex index(kIds);
  std::map<uint32_t, uint64_t> table;
  for (int step = 0; step < 20'000; ++step) {
    auto id = static_cast<uint32_t>(random.below(kIds));
    bool fill = step / 2000 % 2 == 0;
    if (table.contains(id)) {
      if (fill && !random.chance(0.05)) continue;
      index.erase(table[id], id);
      table.erase(id);
    } else {
      uint64_t hash = random.next() & 0x30000000'0000ff00;
      index.insert(hash, id);
      table[id] = hash;
    }
    auto probe = static_cast<uint32_t>(random.below(kIds));
    uint64_t hash = table.contains(probe) ? table[probe] : random.next();
    uint32_t found = index.find(hash, [&](uint32_t i) { return i == probe; });
    ASSERT_EQ(found, table.contains(probe) ? probe : FlowIndex::kNone);
  }
}

}  // namespace
}  // namespace braid::flow_index_test
