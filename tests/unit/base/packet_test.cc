#include "base/packet.h"

#include <gtest/gtest.h>

#include <algorithm>
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

TEST(PacketPool, TheBudgetsLeaveAnEighthToWhatPasses) {
  PacketPool pool(100, 65536);
  size_t kept = 0;
  for (PacketUse use : {PacketUse::kQueued, PacketUse::kSent, PacketUse::kHeld})
    kept += pool.budget(use).limit();
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
  b.reset();
  EXPECT_EQ(pool.inUse(), 0u);
}

// Against a plain vector.
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
