#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "ackshim/direction.h"
#include "ackshim/flow_table.h"

namespace braid::pieces_test {
namespace {

SeqRange range(uint32_t begin, uint32_t end) {
  return {{begin}, {end}};
}
Timestamp32 at(Duration d) {
  return Timestamp32{} + d;
}

TEST(LegRttTest, AsInRfc6298) {
  LegRtt rtt;
  EXPECT_FALSE(rtt.hasSample());
  rtt.onSample(8ms);
  EXPECT_EQ(rtt.smoothed(), 8ms);
  EXPECT_EQ(rtt.variation(), 4ms);
  rtt.onSample(16ms);
  EXPECT_EQ(rtt.variation(), 5ms);  // 3/4 * 4 + 1/4 * 8
  EXPECT_EQ(rtt.smoothed(), 9ms);
  EXPECT_EQ(rtt.patience(), 29ms);
  for (int i = 0; i < 50; ++i) rtt.onSample(9ms);
  EXPECT_EQ(rtt.patience(), 18ms);  // the variation is gone
}

TEST(StampTest, Wraps) {
  Timestamp32 late{0xfffffff0};
  Timestamp32 later = late + 1ms;
  EXPECT_EQ(later - late, 1ms);
  EXPECT_EQ(late - later, -1ms);
  EXPECT_EQ(latest(late, later).us, later.us);
}

TEST(ArrivalsTest, HolesAreFilledFromTheEdge) {
  Arrivals a;
  a.restart({0xffffff00});
  a.onArrive(range(0xffffff00, 0x100), at(1ms));
  EXPECT_FALSE(a.hasHole());
  a.onArrive(range(0x200, 0x300), at(2ms));
  a.onArrive(range(0x300, 0x400), at(3ms));
  EXPECT_TRUE(a.hasHole());
  EXPECT_EQ(a.ahead[0], range(0x200, 0x400));
  EXPECT_EQ(a.since - at(0ms), 2ms);
  a.onArrive(range(0x500, 0x600), at(4ms));
  a.onArrive(range(0x100, 0x200), at(5ms));
  EXPECT_EQ(a.edge, Seq{0x400});
  EXPECT_EQ(a.ahead[0], range(0x500, 0x600));
  EXPECT_EQ(a.since - at(0ms), 5ms);  // another hole
  a.onArrive(range(0x400, 0x500), at(6ms));
  EXPECT_EQ(a.edge, Seq{0x600});
  EXPECT_FALSE(a.hasHole());
}

TEST(ArrivalsTest, RangesJoinAndOverflowIsForgotten) {
  Arrivals a;
  a.restart({0});
  a.onArrive(range(50, 60), at(1ms));
  a.onArrive(range(30, 40), at(1ms));
  EXPECT_EQ(a.ahead[0], range(30, 40));
  EXPECT_EQ(a.ahead[1], range(50, 60));
  a.onArrive(range(70, 80), at(1ms));
  EXPECT_EQ(a.ahead[1], range(50, 60));
  a.onArrive(range(40, 50), at(1ms));
  EXPECT_EQ(a.ahead[0], range(30, 60));
  EXPECT_TRUE(a.ahead[1].empty());
}

TEST(ArrivalsTest, WhatTheTunnelDroppedIsAHole) {
  Arrivals a;
  a.restart({0});
  a.onArrive(range(0, 100), at(1ms));
  a.onLost(range(40, 60), at(0ms));
  EXPECT_EQ(a.edge, Seq{40});
  EXPECT_EQ(a.ahead[0], range(60, 100));
  a.onArrive(range(40, 60), at(2ms));
  EXPECT_EQ(a.edge, Seq{100});
  a.onLost(range(90, 100), at(0ms));
  EXPECT_FALSE(a.hasHole());  // nothing came behind it yet
  a.onArrive(range(100, 110), at(3ms));
  EXPECT_TRUE(a.hasHole());
}

TEST(BoundariesTest, CountBackFromTheHighestByte) {
  Boundaries b;
  EXPECT_FALSE(b.lastBegin({100}));
  b.push(10, true);
  b.push(20, true);
  b.push(30, true);  // [40,50) [50,70) [70,100)
  EXPECT_EQ(b.lastBegin({100}), Seq{70});
  EXPECT_EQ(b.secondBegin({40}, {100}), Seq{50});
  EXPECT_EQ(b.secondBegin({50}, {100}), Seq{70});
  EXPECT_FALSE(b.secondBegin({70}, {100}));  // the last one
  EXPECT_FALSE(b.secondBegin({45}, {100}));  // no boundary
  b.push(5, true);
  EXPECT_FALSE(b.secondBegin({40}, {105}));  // forgotten
  b.push(5, false);
  EXPECT_EQ(b.lastBegin({200}), Seq{195});
  EXPECT_FALSE(b.secondBegin({165}, {200}));
}

TEST(TailCacheTest, KeepsTheLastOfEachListAndNoMoreThanItsStore) {
  TailCache cache(100, 4, 3);
  TailCache::List a, b;
  std::vector<uint8_t> bytes(100, 7);
  for (uint32_t i = 0; i < 4; ++i)
    EXPECT_TRUE(cache.append(a, bytes, range(i * 10, i * 10 + 10), at(0ms)));
  EXPECT_EQ(a.count, 3);
  EXPECT_EQ(cache.front(a)->range, range(10, 20));
  EXPECT_TRUE(cache.append(b, bytes, range(0, 10), at(0ms)));
  EXPECT_FALSE(cache.append(b, bytes, range(10, 20), at(0ms)));  // full
  EXPECT_EQ(cache.size(), 4u);
  EXPECT_TRUE(cache.onResent(a, range(20, 30), at(5ms)));
  EXPECT_FALSE(cache.onResent(a, range(40, 50), at(5ms)));
  cache.popBelow(a, {25});
  EXPECT_EQ(cache.front(a)->range, range(20, 30));
  EXPECT_EQ(cache.front(a)->sendCount, 2);
  EXPECT_EQ(cache.front(a)->sentAt - at(0ms), 5ms);
  cache.clear(a);
  EXPECT_EQ(cache.front(a), nullptr);
  EXPECT_TRUE(a.empty());
  EXPECT_EQ(a.count, 0);
  EXPECT_TRUE(cache.append(a, bytes, range(0, 10), at(0ms)));
  cache.clear(a);
  cache.clear(b);
  EXPECT_EQ(cache.size(), 0u);
}

TEST(TailCacheTest, NoStoreNoCopies) {
  TailCache cache(100, 0, 3);
  TailCache::List a;
  std::vector<uint8_t> bytes(10);
  EXPECT_FALSE(cache.append(a, bytes, range(0, 10), at(0ms)));
  TailCache small(5, 4, 3);
  EXPECT_FALSE(small.append(a, bytes, range(0, 10), at(0ms)));
  EXPECT_TRUE(a.empty());
}

FlowKey keyOf(uint32_t n) {
  FlowKey key{Address::Family::kV4, 6, 1, 2, {}, {}};
  store32(key.src.data(), n);
  return key;
}

TEST(FlowTableTest, TakesMemoryForFlowsThatThereAre) {
  auto residentBytes = [] {
    std::ifstream statm("/proc/self/statm");
    size_t size = 0, resident = 0;
    statm >> size >> resident;
    return resident * static_cast<size_t>(::getpagesize());
  };
  constexpr size_t kFlows = 1 << 18;  // 60 MB
  size_t before = residentBytes();
  FlowTable table(kFlows, 1000, 9);
  EXPECT_LT(residentBytes(), before + (16 << 20));
}

TEST(FlowTableTest, HalfOpenFlowsReplaceTheOldestAndNeverAProvenOne) {
  FlowTable table(2, 3, 9);
  auto add = [&](uint32_t n) { return table.addHalfOpen(keyOf(n), table.hash(keyOf(n))); };
  auto proven = [&](uint32_t n) {
    return table.findProven(keyOf(n), table.hash(keyOf(n))) != FlowTable::kNone;
  };
  auto halfOpen = [&](uint32_t n) {
    return table.findHalfOpen(keyOf(n), table.hash(keyOf(n))) != FlowTable::kNone;
  };
  EXPECT_NE(table.prove(add(1), table.hash(keyOf(1))), FlowTable::kNone);
  EXPECT_FALSE(halfOpen(1));
  EXPECT_TRUE(proven(1));
  for (uint32_t n = 2; n < 10'000; ++n) add(n);
  EXPECT_TRUE(proven(1));
  EXPECT_FALSE(halfOpen(9'996));
  EXPECT_TRUE(halfOpen(9'997) && halfOpen(9'998) && halfOpen(9'999));
  EXPECT_NE(table.prove(add(9'998), table.hash(keyOf(9'998))), FlowTable::kNone);
  EXPECT_TRUE(table.isFull());
  EXPECT_EQ(table.prove(add(9'999), table.hash(keyOf(9'999))), FlowTable::kNone);
  uint32_t victim = table.findEvictable([&](const ShimFlow& f) { return f.key == keyOf(1); });
  ASSERT_NE(victim, FlowTable::kNone);
  table.erase(victim);
  EXPECT_FALSE(proven(1));
  EXPECT_EQ(table.size(), 1u);
  EXPECT_NE(table.prove(add(9'999), table.hash(keyOf(9'999))), FlowTable::kNone);
  EXPECT_EQ(table.findEvictable([](const ShimFlow&) { return false; }), FlowTable::kNone);
}

TEST(FlowTableTest, ChainsHoldWhatCollides) {
  FlowTable table(64, 64, 9);
  for (uint32_t n = 0; n < 64; ++n) {
    size_t hash = table.hash(keyOf(n));
    ASSERT_NE(table.prove(table.addHalfOpen(keyOf(n), hash), hash), FlowTable::kNone);
  }
  for (uint32_t n = 0; n < 64; n += 2)
    table.erase(table.findProven(keyOf(n), table.hash(keyOf(n))));
  for (uint32_t n = 0; n < 64; ++n) {
    uint32_t i = table.findProven(keyOf(n), table.hash(keyOf(n)));
    ASSERT_EQ(i != FlowTable::kNone, n % 2 == 1) << n;
  }
  EXPECT_EQ(table.size(), 32u);
}

}  // namespace
}  // namespace braid::pieces_test
