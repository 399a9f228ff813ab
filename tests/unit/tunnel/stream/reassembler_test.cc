#include "tunnel/stream/reassembler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"

namespace braid::reassembler_test {
namespace {

uint8_t byteAt(uint64_t offset) {
  return static_cast<uint8_t>(offset * 2654435761u >> 13);
}

struct ReassemblerTest : testing::Test {
  PacketPool pool{2048, 8192};
  ChunkPool store;
  Reassembler assembly{store};
  uint64_t read = 0;

  Packet range(uint64_t offset, size_t size) {
    Packet packet = pool.allocate();
    packet.append(size);
    for (size_t i = 0; i < size; ++i) packet.data()[i] = byteAt(offset + i);
    return packet;
  }
  void add(uint64_t offset, size_t size, bool last = false) {
    ASSERT_TRUE(assembly.agrees(offset + size, last));
    assembly.add(offset, range(offset, size), last);
  }
  /// Reads up to `most` bytes and compares them with the pattern.
  void take(size_t most) {
    while (most > 0) {
      std::array<ByteView, 3> views;
      size_t n = assembly.peek(views);
      if (n == 0) return;
      size_t taken = 0;
      for (size_t i = 0; i < n && taken < most; ++i) {
        for (uint8_t byte : views[i].first(std::min(views[i].size(), most - taken)))
          if (byte != byteAt(read + taken++)) FAIL() << "wrong at " << read + taken - 1;
      }
      assembly.consume(taken);
      read += taken;
      most -= taken;
      ASSERT_EQ(assembly.consumed(), read);
    }
  }
};

TEST_F(ReassemblerTest, BytesInOrderCanBeReadAtOnce) {
  add(0, 1000);
  add(1000, 1000);
  EXPECT_EQ(assembly.readable(), 2000u);
  take(1500);
  EXPECT_EQ(assembly.readable(), 500u);
  take(5000);
  EXPECT_EQ(read, 2000u);
  EXPECT_EQ(assembly.footprint(), 0u);
  EXPECT_EQ(pool.inUse(), 0u);
}

TEST_F(ReassemblerTest, WhatComesEarlyWaitsForTheGap) {
  add(1000, 1000);
  add(3000, 1000, true);
  EXPECT_EQ(assembly.readable(), 0u);
  add(0, 1000);
  EXPECT_EQ(assembly.readable(), 2000u);
  EXPECT_FALSE(assembly.isWhole());
  add(2000, 1000);
  EXPECT_TRUE(assembly.isWhole());
  EXPECT_FALSE(assembly.isAtEnd());
  take(4000);
  EXPECT_TRUE(assembly.isAtEnd());
  EXPECT_EQ(store.windows.inUse(), 0u);
  EXPECT_EQ(store.pages.inUse(), 0u);
  EXPECT_EQ(store.chunks.inUse(), 0u);
}

TEST_F(ReassemblerTest, AnEndWithoutBytesIsTheEnd) {
  add(0, 10);
  add(10, 0, true);
  EXPECT_TRUE(assembly.isWhole());
  take(10);
  EXPECT_TRUE(assembly.isAtEnd());
}

TEST_F(ReassemblerTest, TheEndOfAStreamIsSaidOnceAndForAll) {
  add(0, 100);
  EXPECT_FALSE(assembly.agrees(99, true)) << "bytes behind it have come";
  add(150, 50, true);
  EXPECT_TRUE(assembly.agrees(200, true));
  EXPECT_TRUE(assembly.agrees(200, false));
  EXPECT_FALSE(assembly.agrees(201, false));
  EXPECT_FALSE(assembly.agrees(150, true));
}

TEST_F(ReassemblerTest, ManySmallRangesInOrderTakeFewBuffers) {
  for (uint64_t i = 0; i < 2000; ++i) add(i * 20, 20);
  EXPECT_EQ(assembly.readable(), 40000u);
  EXPECT_LE(assembly.packets(), 25u);
  EXPECT_EQ(pool.inUse(), assembly.packets());
  take(40000);
  EXPECT_EQ(read, 40000u);
}

TEST_F(ReassemblerTest, WhatIsThrownAwayGivesAllBack) {
  for (uint64_t i = 1; i < 300; i += 2) add(i * 700, 700);
  add(0, 700);
  EXPECT_GT(assembly.packets(), 100u);
  assembly.clear();
  EXPECT_EQ(assembly.footprint(), 0u);
  EXPECT_EQ(pool.inUse(), 0u);
  EXPECT_EQ(store.chunks.inUse() + store.pages.inUse() + store.windows.inUse(), 0u);
}

// Found by code review: one out-of-order byte for each 64 KB of a window used more memory than its
// buffer, which was not counted.
TEST_F(ReassemblerTest, WhatKeepsEarlyBytesInOrderCountsAsHeld) {
  constexpr uint64_t kPageBytes = StreamWindow::kGrain * StreamWindow::kPageGrains;
  size_t buffer = pool.allocate().footprint();
  for (uint64_t i = 1; i <= 10; ++i) {
    uint64_t offset = i * kPageBytes;
    size_t said = assembly.footprint() + assembly.growth(offset, 1, buffer);
    add(offset, 1);
    EXPECT_EQ(assembly.footprint(), said) << "room was asked for all of it";
    EXPECT_EQ(
        assembly.footprint(),
        i * (buffer + sizeof(StreamChunk) + sizeof(StreamWindow::Page)) + sizeof(StreamWindow));
  }
  size_t before = assembly.footprint();
  EXPECT_EQ(assembly.growth(kPageBytes + 5, 1, buffer), buffer + sizeof(StreamChunk))
      << "the page is there";
  add(kPageBytes + 5, 1);
  EXPECT_EQ(assembly.footprint(), before + buffer + sizeof(StreamChunk));
  assembly.clear();
  EXPECT_EQ(assembly.footprint(), 0u);
}

// Any ranges of a stream, in any order, overlapping and repeated, with reads of any size in
// between: the bytes must be those of the stream, and only unread bytes are kept. Found by code
// review: ranges that each reach a little further were kept in one chain as long as there were
// buffers, and every new one walked over all of them.
TEST_F(ReassemblerTest, FewWaitNearEachOther) {
  for (size_t i = 0; i < Reassembler::kMostNear; ++i) {
    EXPECT_FALSE(assembly.isCrowded(2048)) << i;
    add(2048, 1 + i);
  }
  EXPECT_EQ(assembly.packets(), Reassembler::kMostNear);
  EXPECT_TRUE(assembly.isCrowded(2048));
  EXPECT_TRUE(assembly.isCrowded(3071));
  EXPECT_FALSE(assembly.isCrowded(3072)) << "the next grain";
  EXPECT_FALSE(assembly.isCrowded(0)) << "what comes in order is always taken";
  add(0, 1500);
  add(1500, 548);
  take(10000);
  EXPECT_EQ(read, 2048 + Reassembler::kMostNear);
  EXPECT_EQ(assembly.footprint(), 0u);
}

TEST_F(ReassemblerTest, AnyOrderOfAnyRangesIsTheStream) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    Random random(seed);
    read = 0;
    Reassembler stream(store);
    uint64_t length = random.below(200000);
    uint64_t window = 1 + random.below(60000);
    size_t largest = 1 + random.below(1800);
    std::vector<std::pair<uint64_t, size_t>> sent;
    uint64_t next = 0;
    for (int steps = 0; steps < 200000 && !stream.isAtEnd(); ++steps) {
      uint64_t limit = std::min(length, stream.consumed() + window);
      uint64_t offset = next;
      size_t size = 1 + random.below(largest);
      switch (random.below(4)) {
        case 0:  // the next one
          break;
        case 1:  // anything within the window
          offset = stream.arrived() + random.below(window);
          break;
        case 2:  // the gap
          offset = stream.arrived() - random.below(std::min<uint64_t>(stream.arrived() + 1, 500));
          break;
        default:  // bytes that had already arrived
          if (!sent.empty()) offset = sent[random.below(sent.size())].first;
      }
      if (offset > limit) continue;
      size = static_cast<size_t>(std::min<uint64_t>(size, limit - offset));
      bool last = offset + size == length;
      if (size == 0 && !last) continue;
      ASSERT_TRUE(stream.agrees(offset + size, last));
      stream.add(offset, range(offset, size), last);
      next = std::max(next, offset + size);
      sent.emplace_back(offset, size);
      ASSERT_EQ(stream.packets() == 0, stream.footprint() == 0);
      if (random.below(3) > 0) continue;
      size_t most = random.below(5000);
      std::array<ByteView, 4> views;
      size_t n = stream.peek(views);
      size_t taken = 0;
      for (size_t i = 0; i < n; ++i)
        for (uint8_t byte : views[i].first(std::min(views[i].size(), most - taken)))
          if (byte != byteAt(read + taken++)) FAIL() << "seed " << seed;
      stream.consume(taken);
      read += taken;
    }
    EXPECT_TRUE(stream.isAtEnd()) << "seed " << seed << ": " << stream.consumed() << " of "
                                  << length;
    EXPECT_EQ(stream.packets(), 0u) << "seed " << seed;
  }
  EXPECT_EQ(store.chunks.inUse() + store.pages.inUse() + store.windows.inUse(), 0u);
  EXPECT_EQ(pool.inUse(), 0u);
}

TEST_F(ReassemblerTest, AWholeWindowOfEarlyBytesComesOutInOrder) {
  PacketPool large(2048, 16384);
  constexpr size_t kSize = 1400;
  constexpr uint64_t kCount = StreamWindow::kSpan / kSize - 100;
  for (uint64_t i = kCount; i-- > 0;) {
    Packet packet = large.allocate();
    packet.append(kSize);
    for (size_t k = 0; k < kSize; ++k) packet.data()[k] = byteAt(i * kSize + k);
    assembly.add(i * kSize, std::move(packet), false);
  }
  EXPECT_EQ(assembly.readable(), kCount * kSize);
  take(kCount * kSize);
  EXPECT_EQ(read, kCount * kSize);
}

}  // namespace
}  // namespace braid::reassembler_test
