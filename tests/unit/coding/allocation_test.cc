// Encoder and decoder allocate nothing per packet once they are warm, and the decoder frees its
// memory.

#include <gtest/gtest.h>

#include "tests/heap.h"
#include "tests/unit/coding/coded_block.h"

namespace braid::allocation_test {
namespace {

using test::allocations;
using test::heldBytes;

TEST(Allocation, TheCounterCounts) {
  const uint64_t before = allocations;
  { SymbolStore store(100, 3); }
  EXPECT_GT(allocations, before);
}

TEST(Allocation, NonePerBlockOfTheEncoder) {
  BlockEncoder encoder(1400);
  const Bytes symbol(1400, 3);
  const std::array<ByteView, 2> pieces{ByteView(symbol).first(700), ByteView(symbol).subspan(700)};
  uint64_t before = 0;
  for (int round = 0; round < 20; ++round) {
    if (round == 1) before = allocations;
    encoder.begin();
    for (size_t i = 0; i < kMaxBlockSymbols; ++i) encoder.add(pieces);
    for (size_t i = 0; i < kMaxBlockParities; ++i) encoder.parity(i);
  }
  EXPECT_EQ(allocations, before);
}

TEST(Allocation, NonePerPacketOfTheDecoder) {
  Random random(1);
  BlockDecoder decoder(DecoderOptions{1400, 64, 4, 16});
  std::vector<CodedBlock> blocks;
  for (uint16_t id = 0; id < 40; ++id) {
    blocks.push_back(
        makeBlock(random, id, {{0, uint64_t{id} * 20, 20}, {1, uint64_t{id} * 4, 4}}, 4, 1400));
  }
  uint64_t before = 0;
  BlockDecoder::Restored out;
  size_t restored = 0;
  for (const CodedBlock& block : blocks) {
    // By then the maximum number of blocks has been open at once.
    if (block.description.block == 20) before = allocations;
    for (size_t j = 3; j < block.k(); ++j) block.send(decoder, j);
    for (size_t i = 0; i < 3; ++i) {
      if (block.description.block % 4 == 3 && i == 1) break;  // stays open until it is evicted
      block.onlyHead(decoder, i, 1);
      block.onlyTail(decoder, i, 1);
    }
    while (decoder.poll(out)) ++restored;
  }
  EXPECT_EQ(allocations, before);
  EXPECT_EQ(restored, 30u * 3);
  EXPECT_GT(decoder.counts().evicted, 0u);
}

// Found by review: a vector keeps its capacity when `{}` is assigned to it, so all blocks stayed,
// and footprint() did not count them.
TEST(Allocation, TheDecoderGivesBackWhatItTook) {
  // Memory that may stay allocated: the table of the rings, and places for 16 restored symbols.
  constexpr int64_t kMayStay = 2048;
  Random random(1);
  BlockDecoder decoder(DecoderOptions{1400, 64, 4, 16});
  std::vector<CodedBlock> blocks;
  for (uint16_t id = 0; id < 40; ++id) {
    blocks.push_back(
        makeBlock(random, id, {{0, uint64_t{id} * 20, 20}, {1, uint64_t{id} * 4, 4}}, 4, 1400));
  }
  const int64_t before = heldBytes;
  size_t restored = 0;
  for (size_t round = 0; round < 2; ++round) {
    SCOPED_TRACE(round);
    for (size_t id = 20 * round; id < 20 * (round + 1); ++id) {
      for (size_t j = 3; j < blocks[id].k(); ++j) blocks[id].send(decoder, j);
      for (size_t i = 0; i < (id % 2 ? 3u : 1u); ++i) blocks[id].protect(decoder, i);
      restored += drain(decoder).size();
    }
    EXPECT_GT(heldBytes - before, int64_t{64} * 1400) << "a ring at least";
    EXPECT_GE(heldBytes - before, static_cast<int64_t>(decoder.footprint()));
    decoder.release();
    EXPECT_EQ(decoder.footprint(), 0u);
    EXPECT_LT(heldBytes - before, kMayStay);
  }
  EXPECT_EQ(restored, 20u * 3);
}

}  // namespace
}  // namespace braid::allocation_test
