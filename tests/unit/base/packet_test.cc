#include "base/packet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"

namespace braid::packet_test {
namespace {

TEST(PacketPool, GivesHeadroomAndTailroom) {
  PacketPool pool(1500, 4);
  Packet p = pool.allocate();
  ASSERT_TRUE(p);
  EXPECT_EQ(p.size(), 0u);
  EXPECT_EQ(p.headroom(), PacketPool::kHeadroom);
  EXPECT_EQ(p.tailroom(), 1500 + PacketPool::kTailroom);
}

TEST(PacketDeathTest, NothingReachesOutsideOfTheBlock) {
  PacketPool pool(100, 1);
  Packet p = pool.allocate();
  p.append(10);
  EXPECT_DEATH(p.prepend(p.headroom() + 1), "");
  EXPECT_DEATH(p.append(p.tailroom() + 1), "");
  EXPECT_DEATH(p.trimFront(11), "");
  EXPECT_DEATH(p.setSize(10 + p.tailroom() + 1), "");
}

TEST(PacketPool, IsBoundedAndCountsRefusals) {
  PacketPool pool(100, 3);
  std::vector<Packet> held;
  for (int i = 0; i < 3; ++i) held.push_back(pool.allocate());
  EXPECT_FALSE(pool.allocate());
  EXPECT_EQ(pool.exhausted(), 1u);
  EXPECT_EQ(pool.inUse(), 3u);
  held.pop_back();
  EXPECT_TRUE(pool.allocate());
  EXPECT_EQ(pool.inUse(), 2u);
}

TEST(PacketPool, WhatWasSpareForAWhileIsGivenBack) {
  PacketPool pool(100, 1000);
  std::vector<Packet> held;
  for (int i = 0; i < 1000; ++i) held.push_back(pool.allocate());
  size_t all = pool.footprint();
  EXPECT_FALSE(pool.hasSpare());
  held.resize(1);
  EXPECT_TRUE(pool.hasSpare());
  pool.shrink();
  EXPECT_EQ(pool.footprint(), all) << "it was in use a moment ago";
  for (int i = 0; i < 100; ++i) held.push_back(pool.allocate());
  held.resize(1);
  pool.shrink();
  size_t left = pool.footprint();
  EXPECT_LT(left, all / 4);
  EXPECT_GE(left, all / 10) << "100 were in use in between";
  pool.shrink();
  EXPECT_LT(pool.footprint(), all / 10);
  EXPECT_FALSE(pool.hasSpare());
  pool.shrink();
  EXPECT_GT(pool.footprint(), 0u) << "one is in use";
  for (int i = 1; i < 1000; ++i) held.push_back(pool.allocate());
  EXPECT_TRUE(held.back());
  EXPECT_FALSE(pool.allocate());
  EXPECT_EQ(pool.footprint(), all);
}

TEST(PacketPool, GivesBackMuchInSteps) {
  PacketPool pool(100, 64 * 100);
  std::vector<Packet> held;
  for (int i = 0; i < 64 * 100; ++i) held.push_back(pool.allocate());
  size_t all = pool.footprint();
  held.clear();
  EXPECT_FALSE(pool.shrink()) << "all was in use a moment ago";
  size_t before = all;
  int steps = 0;
  for (bool more = true; more; ++steps) {
    more = pool.shrink();
    EXPECT_LT(pool.footprint(), before);
    EXPECT_GE(pool.footprint() + all / 3, before);
    before = pool.footprint();
  }
  EXPECT_EQ(steps, 4);
  EXPECT_EQ(pool.footprint(), 0u);
  EXPECT_TRUE(pool.allocate());
}

// Compares the pool with counting: every block is handed out only once at a time, keeps its bytes,
// and is available again after it was returned, in any order.
TEST(PacketPool, TakingGivingAndShrinkingInAnyOrder) {
  constexpr uint64_t kSeed = 5;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random(kSeed);
  PacketPool pool(60, 300);
  struct Held {
    Packet packet;
    uint8_t mark;
  };
  std::vector<Held> held;
  for (int step = 0; step < 20'000; ++step) {
    bool growing = step / 1000 % 2 == 0;
    if (random.chance(growing ? 0.7 : 0.3)) {
      Packet packet = pool.allocate();
      ASSERT_EQ(static_cast<bool>(packet), held.size() < 300);
      if (!packet) continue;
      ASSERT_EQ(reinterpret_cast<uintptr_t>(packet.data()) % 16, 0u);
      auto mark = static_cast<uint8_t>(random.next());
      std::fill_n(packet.append(60), 60, mark);
      held.push_back({std::move(packet), mark});
    } else if (!held.empty()) {
      std::swap(held[random.below(held.size())], held.back());
      const Held& last = held.back();
      ASSERT_TRUE(
          std::ranges::all_of(last.packet.view(), [&](uint8_t b) { return b == last.mark; }));
      held.pop_back();
    }
    if (random.chance(0.01)) pool.shrink();
    ASSERT_EQ(pool.inUse(), held.size());
  }
}

TEST(PacketPool, TheBudgetsLeaveAnEighthToWhatPasses) {
  PacketPool pool(100, 65536);
  size_t kept = 0;
  for (PacketUse use : {PacketUse::kQueued, PacketUse::kSent, PacketUse::kHeld})
    kept += pool.quota(use).limit();
  EXPECT_EQ(kept, 65536u / 8 * 7);
}

TEST(Packet, TakesAWholeBlock) {
  PacketPool pool(100, 3);
  Packet p = pool.allocate();
  EXPECT_EQ(p.footprint(), PacketPool::kHeadroom + 100 + PacketPool::kTailroom);
  p.append(20);
  EXPECT_EQ(p.footprint(), PacketPool::kHeadroom + 100 + PacketPool::kTailroom);
  EXPECT_EQ(Packet().footprint(), 0u);
}

TEST(PacketPool, CopyRefusesWhatDoesNotFit) {
  PacketPool pool(100, 3);
  std::vector<uint8_t> bytes(101);
  EXPECT_FALSE(pool.copy(bytes));
  EXPECT_TRUE(pool.copy(ByteView(bytes).first(100)));
}

TEST(Packet, MovesOwnership) {
  PacketPool pool(100, 3);
  Packet a = pool.copy(std::vector<uint8_t>{1, 2, 3});
  Packet b = std::move(a);
  EXPECT_FALSE(a);
  EXPECT_EQ(b.size(), 3u);
  b = pool.allocate();
  EXPECT_EQ(pool.inUse(), 1u) << "the old block went back";
  b = std::move(*&b);
  EXPECT_EQ(pool.inUse(), 1u) << "a packet moved to itself keeps its block";
  EXPECT_TRUE(b);
  b.reset();
  EXPECT_EQ(pool.inUse(), 0u);
}

// Compared with a plain vector.
TEST(Packet, GrowsAndShrinksAtBothEnds) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    PacketPool pool(200, 1);
    Packet p = pool.allocate();
    std::vector<uint8_t> model;
    for (int step = 0; step < 200; ++step) {
      auto byte = static_cast<uint8_t>(random.next());
      switch (random.below(4)) {
        case 0: {
          size_t n = random.below(std::min<size_t>(p.headroom(), 20) + 1);
          std::fill_n(p.prepend(n), n, byte);
          model.insert(model.begin(), n, byte);
          break;
        }
        case 1: {
          size_t n = random.below(std::min<size_t>(p.tailroom(), 20) + 1);
          std::fill_n(p.append(n), n, byte);
          model.insert(model.end(), n, byte);
          break;
        }
        case 2: {
          size_t n = random.below(p.size() + 1);
          p.trimFront(n);
          model.erase(model.begin(), model.begin() + static_cast<ptrdiff_t>(n));
          break;
        }
        case 3: {
          size_t n = random.below(p.size() + 1);
          p.setSize(n);
          model.resize(n);
          break;
        }
      }
      ASSERT_TRUE(std::ranges::equal(p.view(), model)) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace braid::packet_test
