#include "base/containers.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"

namespace braid::bit_ring_test {
namespace {

TEST(BitRing, ABitForEachNumber) {
  BitRing<128> ring;
  ring.set(1000);
  EXPECT_TRUE(ring.test(1000));
  EXPECT_FALSE(ring.test(1001));
  EXPECT_TRUE(ring.test(1128)) << "modulo 128";
  ring.clear(1000);
  EXPECT_FALSE(ring.test(1000));
}

TEST(BitRing, ARunCostsItsWords) {
  BitRing<4096> ring;
  EXPECT_EQ(ring.clear(64, 0), 0u);
  EXPECT_EQ(ring.clear(64, 64), 1u);
  EXPECT_EQ(ring.clear(63, 2), 2u);
  EXPECT_EQ(ring.clear(1, 4096), 65u);
}

TEST(BitRing, ARunEndsWithItsWord) {
  BitRing<128> ring;
  for (uint64_t n = 10; n < 70; ++n) ring.set(n);
  EXPECT_EQ(ring.runAt(9), 0u);
  EXPECT_EQ(ring.runAt(10), 54u);
  EXPECT_EQ(ring.runAt(64), 6u);
  for (uint64_t n = 0; n < 64; ++n) ring.set(n);
  EXPECT_EQ(ring.runAt(0), 64u);
}

TEST(BitRingProperty, RunsMatchASet) {
  Random random(1);
  BitRing<256> ring;
  std::set<uint64_t> set;
  uint64_t base = 0;
  for (int step = 0; step < 3000; ++step) {
    uint64_t first = base + random.below(256);
    uint64_t count = random.below(base + 256 - first + 1);
    bool sets = random.chance(0.5);
    ring.forEachWord(first, count, [&](uint64_t, uint64_t& word, uint64_t mask) {
      word = sets ? word | mask : word & ~mask;
    });
    for (uint64_t n = first; n < first + count; ++n) {
      if (sets) {
        set.insert(n);
      } else {
        set.erase(n);
      }
    }
    for (uint64_t n = base; n < base + 256; ++n) ASSERT_EQ(ring.test(n), set.contains(n)) << n;
    if (!random.chance(0.1)) continue;
    uint64_t next = base + random.below(300);
    for (; base < next; ++base) {
      ring.clear(base);
      set.erase(base);
    }
  }
}

}  // namespace
}  // namespace braid::bit_ring_test
