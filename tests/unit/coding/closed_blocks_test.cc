#include "coding/block_decoder.h"

#include <gtest/gtest.h>

#include <set>

#include "base/random.h"

namespace braid::closed_blocks_test {
namespace {

TEST(ClosedBlocks, NothingIsClosedAtFirst) {
  ClosedBlocks ids;
  for (uint32_t id = 0; id < 0x10000; ++id) ASSERT_FALSE(ids.closed(static_cast<uint16_t>(id)));
}

TEST(ClosedBlocks, AnyIdMayBeTheFirst) {
  for (uint16_t first : {0, 1, 1023, 1024, 0x7fff, 0x8000, 0xffff}) {
    ClosedBlocks ids;
    EXPECT_TRUE(ids.advance(first));
    EXPECT_FALSE(ids.closed(first));
    EXPECT_FALSE(ids.advance(first));
    ids.close(first);
    EXPECT_TRUE(ids.closed(first));
    EXPECT_FALSE(ids.closed(static_cast<uint16_t>(first + 1)));
    EXPECT_FALSE(ids.closed(static_cast<uint16_t>(first - 1)));
  }
}

TEST(ClosedBlocks, BehindTheWindowIsClosed) {
  ClosedBlocks ids;
  ids.advance(5000);
  EXPECT_FALSE(ids.closed(5000 - ClosedBlocks::kWindow + 1));
  EXPECT_TRUE(ids.closed(5000 - ClosedBlocks::kWindow));
  EXPECT_TRUE(ids.tooOld(5000 - ClosedBlocks::kWindow));
  EXPECT_FALSE(ids.tooOld(5001));
}

TEST(ClosedBlocks, IdsWrap) {
  ClosedBlocks ids;
  ids.advance(0xfffe);
  ids.close(0xfffe);
  EXPECT_TRUE(ids.advance(1));
  EXPECT_TRUE(ids.closed(0xfffe));
  EXPECT_FALSE(ids.closed(0xffff));
  EXPECT_FALSE(ids.closed(0));
  for (uint32_t i = 2; i < 0x10000 + 0xffff; ++i) ids.advance(static_cast<uint16_t>(i));
  EXPECT_FALSE(ids.closed(0xfffe)) << "an id of the next round";
}

TEST(ClosedBlocks, FollowsAModel) {
  const uint64_t seed = 3;
  SCOPED_TRACE(seed);
  Random random(seed);
  ClosedBlocks ids;
  uint64_t newest = 100'000;
  ids.advance(static_cast<uint16_t>(newest));
  std::set<uint64_t> closed;
  for (int i = 0; i < 100'000; ++i) {
    if (random.chance(0.2)) {
      newest += random.chance(0.01) ? random.below(5000) : random.below(4);
      ids.advance(static_cast<uint16_t>(newest));
    }
    const uint64_t id = newest - random.below(1500);
    const bool expected = newest - id >= ClosedBlocks::kWindow || closed.contains(id);
    ASSERT_EQ(ids.closed(static_cast<uint16_t>(id)), expected) << id << " of " << newest;
    if (random.chance(0.3)) {
      ids.close(static_cast<uint16_t>(id));
      closed.insert(id);
    }
  }
}

}  // namespace
}  // namespace braid::closed_blocks_test
