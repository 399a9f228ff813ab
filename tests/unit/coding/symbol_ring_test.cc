#include "coding/symbols.h"

#include <gtest/gtest.h>

#include <vector>

namespace braid::symbol_ring_test {
namespace {

using Bytes = std::vector<uint8_t>;

bool add(SymbolRing& ring, uint64_t pn, const Bytes& bytes, Time now = {}) {
  const ByteView piece(bytes);
  return ring.add(pn, {&piece, 1}, now);
}

Bytes get(const SymbolRing& ring, uint64_t pn) {
  auto found = ring.find(pn);
  return found ? Bytes(found->begin(), found->end()) : Bytes{};
}

TEST(SymbolRing, KeepsWhatArrived) {
  SymbolRing ring(100, 8);
  EXPECT_FALSE(ring.find(5));
  EXPECT_TRUE(add(ring, 5, {1, 2, 3}));
  EXPECT_TRUE(add(ring, 0, {4}));
  EXPECT_EQ(get(ring, 5), (Bytes{1, 2, 3}));
  EXPECT_EQ(get(ring, 0), (Bytes{4}));
  EXPECT_FALSE(ring.find(13)) << "the place of 5";
}

TEST(SymbolRing, ADuplicateDoesNothing) {
  SymbolRing ring(100, 8);
  EXPECT_TRUE(add(ring, 5, {1}));
  EXPECT_FALSE(add(ring, 5, {2}));
  EXPECT_EQ(get(ring, 5), (Bytes{1}));
}

TEST(SymbolRing, TheNewerWipesOutTheOlder) {
  SymbolRing ring(100, 8);
  for (uint64_t pn = 0; pn < 12; ++pn) ASSERT_TRUE(add(ring, pn, {static_cast<uint8_t>(pn)}));
  for (uint64_t pn = 0; pn < 4; ++pn) EXPECT_FALSE(ring.find(pn)) << pn;
  for (uint64_t pn = 4; pn < 12; ++pn) EXPECT_EQ(get(ring, pn), (Bytes{static_cast<uint8_t>(pn)}));
}

TEST(SymbolRing, OlderThanTheRingIsIgnored) {
  SymbolRing ring(100, 8);
  ASSERT_TRUE(add(ring, 20, {20}));
  EXPECT_FALSE(add(ring, 12, {12}));
  EXPECT_FALSE(add(ring, 0, {1}));
  EXPECT_TRUE(add(ring, 13, {13})) << "the oldest that has a place";
  EXPECT_EQ(get(ring, 20), (Bytes{20}));
}

TEST(SymbolRing, AnotherSizeKeepsTheNewest) {
  for (size_t packets : {32, 8, 4}) {
    SCOPED_TRACE(packets);
    SymbolRing ring(100, 8);
    for (uint64_t pn = 10; pn < 18; ++pn) ASSERT_TRUE(add(ring, pn, {static_cast<uint8_t>(pn)}));
    ring.resize(100, packets);
    EXPECT_EQ(ring.packets(), packets);
    for (uint64_t pn = 10; pn < 18; ++pn)
      EXPECT_EQ(get(ring, pn), pn + packets < 18 ? Bytes{} : Bytes{static_cast<uint8_t>(pn)}) << pn;
    EXPECT_FALSE(add(ring, 17, {1}));
    EXPECT_TRUE(add(ring, 18, {18}));
    EXPECT_EQ(get(ring, 18), (Bytes{18}));
    EXPECT_EQ(get(ring, 17), (Bytes{17}));
  }
}

TEST(SymbolRing, NeedsMorePlacesWhereOneThatCameNotLongAgoWouldGo) {
  SymbolRing ring(100, 8);
  const Time start = Time{} + 5s;
  for (uint64_t pn = 0; pn < 8; ++pn) {
    EXPECT_EQ(ring.placesFor(pn, start, 1h, 1024), 8u) << "a free place";
    ASSERT_TRUE(add(ring, pn, {1}, start + pn * 10ms));
  }
  EXPECT_EQ(ring.placesFor(7, start + 70ms, 1h, 1024), 8u) << "a duplicate wipes out nothing";
  EXPECT_EQ(ring.placesFor(8, start + 99ms, 100ms, 1024), 16u);
  EXPECT_EQ(ring.placesFor(8, start + 100ms, 100ms, 1024), 8u);
  EXPECT_EQ(ring.placesFor(9, start + 100ms, 100ms, 1024), 16u) << "pn 1 came 10 ms later";
  EXPECT_EQ(ring.placesFor(32, start + 80ms, 100ms, 1024), 64u)
      << "twice as many would not hold both";
  ASSERT_TRUE(add(ring, 20, {1}, start + 200ms));
  EXPECT_EQ(ring.placesFor(12, start + 10h, 100ms, 1024), 16u)
      << "it comes late itself, and has no place";
  EXPECT_EQ(ring.placesFor(12, start + 10h, 100ms, 8), 8u);
}

TEST(SymbolRing, ARestoredOneIsAsYoungAsItsNeighbour) {
  SymbolRing ring(100, 8);
  ASSERT_TRUE(add(ring, 0, {1}, Time{} + 1s));
  ASSERT_TRUE(add(ring, 2, {1}, Time{} + 2s));
  ASSERT_TRUE(add(ring, 3, {1}, Time{} + 9s));
  const Bytes one{1};
  ASSERT_TRUE(ring.addRestored(1, one));
  EXPECT_EQ(ring.placesFor(8, Time{} + 2s, 1s, 1024), 8u);
  EXPECT_EQ(ring.placesFor(9, Time{} + 2s, 1s, 1024), 16u);
}

TEST(SymbolRing, PacketsAreRoundedUp) {
  SymbolRing ring(100, 5);
  for (uint64_t pn = 0; pn < 8; ++pn) ASSERT_TRUE(add(ring, pn, {1}));
  for (uint64_t pn = 0; pn < 8; ++pn) EXPECT_TRUE(ring.find(pn)) << pn;
}

TEST(SymbolRing, PadsWithZeros) {
  SymbolRing ring(100, 1);
  ASSERT_TRUE(add(ring, 0, Bytes(100, 0xff)));
  ASSERT_TRUE(add(ring, 1, Bytes(65, 0xff)));
  const uint8_t* bytes = ring.find(1)->data();
  for (size_t i = 65; i < 128; ++i) EXPECT_EQ(bytes[i], 0) << i;
  EXPECT_EQ(reinterpret_cast<uintptr_t>(bytes) % kSymbolAlignment, 0u);
}

TEST(SymbolRing, ARestoredOneIsThereWithoutItsPadding) {
  SymbolRing ring(100, 8);
  ASSERT_TRUE(add(ring, 9, {9}));
  EXPECT_TRUE(ring.addRestored(8, Bytes{1, 0, 2, 0, 0}));
  EXPECT_EQ(get(ring, 8), (Bytes{1, 0, 2}));
  EXPECT_FALSE(add(ring, 8, {1, 0, 2})) << "the late original is a duplicate";
  EXPECT_TRUE(ring.addRestored(7, Bytes{0, 0}));
  EXPECT_TRUE(ring.find(7));
}

TEST(SymbolRing, ARestoredOneWipesOutNoNewer) {
  SymbolRing ring(100, 8);
  ASSERT_TRUE(add(ring, 20, {20}));
  EXPECT_FALSE(ring.addRestored(12, Bytes{12})) << "older than the ring";
  EXPECT_FALSE(ring.addRestored(11, Bytes{11})) << "older than the ring, though its place is empty";
  EXPECT_FALSE(ring.addRestored(20, Bytes{1})) << "is there";
  ASSERT_TRUE(ring.addRestored(29, Bytes{29}));
  EXPECT_FALSE(ring.addRestored(21, Bytes{21})) << "its place holds 29";
}

TEST(SymbolRing, ARestoredOneFarAheadShutsOutNobody) {
  SymbolRing ring(100, 8);
  ASSERT_TRUE(add(ring, 3, {3}));
  const uint64_t far = (uint64_t{1} << 62) - 8;
  for (uint64_t i = 0; i < 8; ++i) ASSERT_TRUE(ring.addRestored(far + i, Bytes{1}));
  for (uint64_t pn = 4; pn < 12; ++pn) {
    EXPECT_TRUE(add(ring, pn, {static_cast<uint8_t>(pn)})) << pn;
    EXPECT_EQ(get(ring, pn), (Bytes{static_cast<uint8_t>(pn)}));
  }
}

}  // namespace
}  // namespace braid::symbol_ring_test
