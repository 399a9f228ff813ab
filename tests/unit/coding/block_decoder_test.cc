#include "coding/block_decoder.h"

#include <gtest/gtest.h>

#include <bit>
#include <numeric>

#include "base/memory_quota.h"
#include "tests/unit/coding/coded_block.h"

namespace braid::block_decoder_test {
namespace {

class BlockDecoderTest : public testing::Test {
 protected:
  CodedBlock make(uint16_t id, const std::vector<SymbolRange>& ranges, size_t m,
                  size_t longest = 90) {
    return makeBlock(random, id, ranges, m, longest);
  }
  void sendAllBut(const CodedBlock& block, const std::vector<size_t>& lost) {
    for (size_t j = 0; j < block.k(); ++j) {
      if (std::ranges::find(lost, j) == lost.end()) block.send(decoder, j);
    }
  }

  Random random{1};
  BlockDecoder decoder{DecoderOptions{}};
};

TEST_F(BlockDecoderTest, RestoresOneSymbolFromTheXor) {
  CodedBlock block = make(1, {{0, 100, 5}}, 1);
  sendAllBut(block, {2});
  EXPECT_EQ(block.protect(decoder, 0), Verdict::kTaken);
  expectRestored(decoder, block, {2});
  EXPECT_EQ(decoder.counts().wholeParities, 1u);
  EXPECT_EQ(decoder.counts().blocksDecoded, 1u);
  EXPECT_EQ(decoder.counts().restored, 1u);
  EXPECT_EQ(decoder.counts().evicted, 0u);
}

TEST_F(BlockDecoderTest, RestoresThreeOfThirty) {
  CodedBlock block = make(1, {{0, 7, 30}}, 3, 1400);
  sendAllBut(block, {0, 13, 29});
  EXPECT_EQ(block.protect(decoder, 2), Verdict::kTaken);
  EXPECT_EQ(block.protect(decoder, 0), Verdict::kTaken);
  EXPECT_TRUE(drain(decoder).empty());
  EXPECT_EQ(block.protect(decoder, 1), Verdict::kTaken);
  expectRestored(decoder, block, {0, 13, 29});
}

TEST_F(BlockDecoderTest, ParityMayComeFirst) {
  CodedBlock block = make(1, {{0, 0, 4}}, 1);
  EXPECT_EQ(block.protect(decoder, 0), Verdict::kTaken);
  for (size_t j : {0, 3, 1}) block.send(decoder, j);
  expectRestored(decoder, block, {2});
}

TEST_F(BlockDecoderTest, ParitiesAloneRestoreAll) {
  CodedBlock block = make(1, {{0, 50, 3}}, 5);
  for (size_t i : {4, 1, 3}) EXPECT_EQ(block.protect(decoder, i), Verdict::kTaken);
  expectRestored(decoder, block, {0, 1, 2});
  EXPECT_EQ(block.protect(decoder, 0), Verdict::kUseless);
}

TEST_F(BlockDecoderTest, AllPatternsOfSmallBlocks) {
  for (size_t k = 1; k <= 6; ++k) {
    for (size_t m = 1; m <= 3; ++m) {
      for (size_t came = 0; came < size_t{1} << (k + m); ++came) {
        SCOPED_TRACE(testing::Message() << "K " << k << " M " << m << " came " << came);
        BlockDecoder fresh(DecoderOptions{128, 8, 2, 8});
        CodedBlock block = make(1, {{3, 9, static_cast<uint32_t>(k)}}, m, 70);
        std::vector<size_t> lost;
        size_t parities = 0;
        for (size_t j = 0; j < k; ++j) {
          if (came >> j & 1) {
            block.send(fresh, j);
          } else {
            lost.push_back(j);
          }
        }
        for (size_t i = 0; i < m; ++i) {
          if (!(came >> (k + i) & 1)) continue;
          EXPECT_EQ(block.protect(fresh, i),
                    parities < lost.size() ? Verdict::kTaken : Verdict::kUseless);
          ++parities;
        }
        if (parities < lost.size()) lost.clear();
        expectRestored(fresh, block, lost);
      }
    }
  }
}

// For any order of symbols and parities, any K and M, and several subflows: missing symbols are
// restored as soon as K parts have arrived, and not earlier.
TEST_F(BlockDecoderTest, RandomBlocksInRandomOrder) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    random = Random(seed);
    BlockDecoder fresh(DecoderOptions{2048, 8192, 32, 64});
    std::vector<SymbolRange> ranges;
    size_t k = 0;
    for (size_t i = 0, n = 1 + random.below(5); i < n; ++i) {
      const auto count = static_cast<uint32_t>(1 + random.below(25));
      ranges.push_back(
          {static_cast<uint8_t>(random.below(3)), 1000 * i + random.below(100), count});
      k += count;
    }
    CodedBlock block =
        make(static_cast<uint16_t>(random.next()), ranges, 1 + random.below(16), 120);
    std::vector<size_t> parts(k + block.m());
    std::iota(parts.begin(), parts.end(), size_t{0});
    for (size_t i = parts.size(); i-- > 1;) std::swap(parts[i], parts[random.below(i + 1)]);
    std::vector<size_t> lost;
    for (size_t i = 0; i < k; ++i) {
      EXPECT_EQ(fresh.counts().restored, 0u);
      if (parts[i] < k) {
        block.send(fresh, parts[i]);
      } else {
        EXPECT_EQ(block.protect(fresh, parts[i] - k), Verdict::kTaken);
      }
    }
    for (size_t i = k; i < parts.size(); ++i) {
      if (parts[i] < k) lost.push_back(parts[i]);
    }
    std::ranges::sort(lost);
    // When the last part was the block's first parity and nothing is missing, there is nothing to
    // restore.
    expectRestored(fresh, block, lost);
    for (size_t i = k; i < parts.size(); ++i) {
      if (parts[i] < k) {
        block.send(fresh, parts[i]);
      } else if (!lost.empty()) {
        EXPECT_EQ(block.protect(fresh, parts[i] - k), Verdict::kUseless);
      }
    }
    EXPECT_TRUE(drain(fresh).empty());
  }
}

TEST_F(BlockDecoderTest, TheFullBlockOf128And16) {
  CodedBlock block = make(1, {{0, 1, 60}, {1, 1, 60}, {2, 1, 8}}, 16, 1000);
  std::vector<size_t> lost;
  for (size_t j = 0; j < 128; j += 8) lost.push_back(j);
  sendAllBut(block, lost);
  for (size_t i = 0; i < 16; ++i) EXPECT_EQ(block.protect(decoder, i), Verdict::kTaken);
  expectRestored(decoder, block, lost);
}

TEST_F(BlockDecoderTest, ABlockMaySpanSubflows) {
  CodedBlock block = make(1, {{5, 100, 2}, {0, 100, 2}, {5, 300, 1}, {255, 0, 1}}, 2);
  sendAllBut(block, {1, 5});
  block.protect(decoder, 0);
  block.protect(decoder, 1);
  expectRestored(decoder, block, {1, 5});
}

TEST_F(BlockDecoderTest, OtherPacketNumbersAndSubflowsDoNotCount) {
  CodedBlock block = make(1, {{1, 100, 2}, {3, 100, 1}}, 1);
  EXPECT_EQ(block.protect(decoder, 0), Verdict::kTaken);
  block.send(decoder, 0);
  const ByteView piece(block.symbols[1]);
  decoder.onSymbol(1, 99, {&piece, 1}, Time{});
  decoder.onSymbol(1, 102, {&piece, 1}, Time{});
  decoder.onSymbol(2, 100, {&piece, 1}, Time{});
  decoder.onSymbol(3, 101, {&piece, 1}, Time{});
  EXPECT_TRUE(drain(decoder).empty());
  block.send(decoder, 2);
  expectRestored(decoder, block, {1});
}

TEST_F(BlockDecoderTest, ABlockWhoseSymbolsAreAllHereIsUseless) {
  CodedBlock block = make(1, {{0, 0, 4}}, 2);
  sendAllBut(block, {});
  EXPECT_EQ(block.protect(decoder, 0), Verdict::kUseless);
  EXPECT_EQ(block.protect(decoder, 1), Verdict::kUseless);
  EXPECT_EQ(decoder.counts().wholeParities, 0u);
}

TEST_F(BlockDecoderTest, ABlockThatWasWholeStaysUselessWhenItsSymbolsAreWipedOut) {
  BlockDecoder small(DecoderOptions{128, 8, 4, 16});
  CodedBlock block = make(1, {{0, 0, 4}}, 2), next = make(2, {{0, 8, 4}}, 1);
  for (size_t j = 0; j < 4; ++j) block.send(small, j);
  EXPECT_EQ(block.protect(small, 0), Verdict::kUseless);
  for (size_t j = 0; j < 4; ++j) next.send(small, j);
  EXPECT_EQ(block.protect(small, 1), Verdict::kUseless);
}

TEST_F(BlockDecoderTest, ABlockThatFillsUpByItselfIsClosed) {
  CodedBlock block = make(1, {{0, 0, 4}}, 2);
  sendAllBut(block, {0, 1});
  EXPECT_EQ(block.protect(decoder, 0), Verdict::kTaken);
  block.send(decoder, 0);
  expectRestored(decoder, block, {1});
  CodedBlock next = make(2, {{0, 10, 2}}, 3);
  EXPECT_EQ(next.onlyHead(decoder, 0, 1), Verdict::kTaken);
  sendAllBut(next, {});
  EXPECT_EQ(next.protect(decoder, 1), Verdict::kUseless);
  EXPECT_TRUE(drain(decoder).empty());
}

TEST_F(BlockDecoderTest, ADuplicateOfAParityIsUseless) {
  CodedBlock block = make(1, {{0, 0, 4}}, 3);
  EXPECT_EQ(block.protect(decoder, 1), Verdict::kTaken);
  EXPECT_EQ(block.protect(decoder, 1), Verdict::kUseless);
  EXPECT_EQ(decoder.counts().wholeParities, 1u);
}

TEST_F(BlockDecoderTest, ADuplicateOfASymbolDoesNotCount) {
  CodedBlock block = make(1, {{0, 0, 4}}, 1);
  block.protect(decoder, 0);
  for (int i = 0; i < 5; ++i) block.send(decoder, 0);
  EXPECT_TRUE(drain(decoder).empty());
}

TEST_F(BlockDecoderTest, ALateOriginalIsADuplicate) {
  CodedBlock block = make(1, {{0, 0, 4}}, 1);
  sendAllBut(block, {3});
  block.protect(decoder, 0);
  expectRestored(decoder, block, {3});
  block.send(decoder, 3);
  EXPECT_TRUE(drain(decoder).empty());
  EXPECT_EQ(decoder.counts().restored, 1u);
}

// A restored symbol is also used for another block that contains it, although its length is shorter
// there.
TEST_F(BlockDecoderTest, ARestoredSymbolMayCompleteAnotherBlock) {
  CodedBlock first = make(1, {{0, 0, 3}}, 1);
  CodedBlock second = make(2, {{0, 2, 3}}, 1);
  second.symbols[0] = first.symbols[2];
  std::vector<Bytes> symbols = second.symbols;
  BlockEncoder encoder(100);
  encoder.begin();
  for (const Bytes& symbol : symbols) {
    const ByteView piece(symbol);
    ASSERT_TRUE(encoder.add({&piece, 1}));
  }
  ByteView parity = encoder.parity(0);
  second.parities[0].assign(parity.begin(), parity.end());
  second.description.symbolSize = static_cast<uint16_t>(parity.size());
  EXPECT_EQ(second.protect(decoder, 0), Verdict::kTaken);
  second.send(decoder, 1);
  first.send(decoder, 0);
  first.send(decoder, 1);
  EXPECT_TRUE(drain(decoder).empty());
  EXPECT_EQ(first.protect(decoder, 0), Verdict::kTaken);
  std::vector<Got> got = drain(decoder);
  ASSERT_EQ(got.size(), 2u);
  EXPECT_EQ(got[0].block, 1);
  EXPECT_EQ(got[0].symbol, first.padded(2));
  EXPECT_EQ(got[1].block, 2);
  EXPECT_EQ(got[1].symbol, second.padded(2));
}

TEST_F(BlockDecoderTest, AWipedOutSymbolCountsAsMissing) {
  BlockDecoder small(DecoderOptions{128, 8, 4, 16});
  CodedBlock block = make(1, {{0, 0, 6}}, 2);
  EXPECT_EQ(block.protect(small, 0), Verdict::kTaken);
  for (size_t j : {0, 1, 2, 3}) block.send(small, j);
  const Bytes other(50, 1);
  const ByteView piece(other);
  small.onSymbol(0, 9, {&piece, 1}, Time{});  // replaces block 1
  block.send(small, 4);
  EXPECT_TRUE(drain(small).empty()) << "4 symbols and a parity are not 6";
  EXPECT_EQ(block.protect(small, 1), Verdict::kTaken);
  expectRestored(small, block, {1, 5});
}

TEST_F(BlockDecoderTest, RingsWrapForLong) {
  BlockDecoder small(DecoderOptions{128, 16, 4, 16});
  for (uint16_t id = 0; id < 500; ++id) {
    CodedBlock block = make(id, {{0, uint64_t{id} * 7, 7}, {1, uint64_t{id} * 3, 3}}, 2);
    for (size_t j : {0, 2, 3, 4, 5, 6, 7, 9}) block.send(small, j);
    EXPECT_EQ(block.protect(small, 0), Verdict::kTaken);
    EXPECT_EQ(block.protect(small, 1), Verdict::kTaken);
    expectRestored(small, block, {1, 8});
  }
  EXPECT_EQ(small.counts().evicted, 0u);
}

TEST_F(BlockDecoderTest, BlockIdsWrap) {
  for (uint32_t id = 0xfff0; id < 0x10010; ++id) {
    CodedBlock block = make(static_cast<uint16_t>(id), {{0, uint64_t{id} * 2, 2}}, 2);
    block.send(decoder, 0);
    EXPECT_EQ(block.protect(decoder, 0), Verdict::kTaken);
    expectRestored(decoder, block, {1});
    EXPECT_EQ(block.protect(decoder, 1), Verdict::kUseless);
  }
}

// A block whose symbols never arrive is given up long before its id is reused.
TEST_F(BlockDecoderTest, AnIdOfTheNextRoundIsANewBlock) {
  CodedBlock old = make(7, {{0, 0, 2}}, 1);
  EXPECT_EQ(old.protect(decoder, 0), Verdict::kTaken);
  for (uint32_t id = 500; id < 0x10000; id += 500) {
    CodedBlock block = make(static_cast<uint16_t>(id), {{0, id, 2}}, 1, 10);
    block.send(decoder, 0);
    EXPECT_EQ(block.protect(decoder, 0), Verdict::kTaken);
    expectRestored(decoder, block, {1});
  }
  EXPECT_EQ(decoder.counts().evicted, 1u);
  CodedBlock fresh = make(7, {{0, 100'000, 2}}, 1);
  fresh.send(decoder, 1);
  EXPECT_EQ(fresh.protect(decoder, 0), Verdict::kTaken);
  expectRestored(decoder, fresh, {0});
}

TEST_F(BlockDecoderTest, TheOldestBlockIsEvicted) {
  BlockDecoder small(DecoderOptions{128, 64, 3, 16});
  std::vector<CodedBlock> blocks;
  for (uint16_t id = 0; id < 4; ++id) {
    blocks.push_back(make(id, {{0, uint64_t{id} * 4, 4}}, 2));
    EXPECT_EQ(blocks[id].protect(small, 0), Verdict::kTaken);
  }
  EXPECT_EQ(small.counts().evicted, 1u);
  EXPECT_EQ(blocks[0].protect(small, 1), Verdict::kUseless);
  for (size_t id = 0; id < 4; ++id) {
    for (size_t j = 1; j < 4; ++j) blocks[id].send(small, j);
    expectRestored(small, blocks[id], id == 0 ? std::vector<size_t>{} : std::vector<size_t>{0});
  }
}

TEST_F(BlockDecoderTest, TheOldestBlockGivesItsParitiesWhenTheyAreShort) {
  BlockDecoder small(DecoderOptions{128, 64, 8, 3});
  CodedBlock a = make(0, {{0, 0, 4}}, 3), b = make(1, {{0, 4, 4}}, 3);
  EXPECT_EQ(a.protect(small, 0), Verdict::kTaken);
  EXPECT_EQ(b.protect(small, 0), Verdict::kTaken);
  EXPECT_EQ(a.protect(small, 1), Verdict::kTaken);
  EXPECT_EQ(b.protect(small, 1), Verdict::kTaken);
  EXPECT_EQ(small.counts().evicted, 1u);
  EXPECT_EQ(a.protect(small, 2), Verdict::kUseless);
  EXPECT_EQ(b.protect(small, 2), Verdict::kTaken);
  b.send(small, 3);
  expectRestored(small, b, {0, 1, 2});
}

TEST_F(BlockDecoderTest, ABlockThatNeedsMoreParitiesThanThereAreStays) {
  BlockDecoder small(DecoderOptions{128, 64, 8, 2});
  CodedBlock block = make(0, {{0, 0, 4}}, 4);
  EXPECT_EQ(block.protect(small, 0), Verdict::kTaken);
  EXPECT_EQ(block.protect(small, 1), Verdict::kTaken);
  EXPECT_EQ(block.protect(small, 2), Verdict::kUseless);
  block.send(small, 1);
  block.send(small, 2);
  expectRestored(small, block, {0, 3});
}

// Otherwise blocks that never become complete would keep out all later ones while memory is short.
TEST_F(BlockDecoderTest, TheOldestBlockGivesWayWhenThereIsNoMemoryForAnother) {
  const CodedBlock first = make(1, {{0, 0, 4}}, 1);
  const CodedBlock second = make(2, {{0, 4, 1}}, 1);
  BlockDecoder ample{DecoderOptions{}};
  EXPECT_EQ(first.protect(ample, 0), Verdict::kTaken);
  MemoryQuota memory(ample.footprint() * 3 / 2);  // a quarter of it is for others
  DecoderOptions options;
  options.memory = &memory;
  BlockDecoder scarce(options);
  EXPECT_EQ(first.protect(scarce, 0), Verdict::kTaken);
  EXPECT_EQ(scarce.footprint(), ample.footprint());
  EXPECT_EQ(second.protect(scarce, 0), Verdict::kTaken);
  EXPECT_EQ(scarce.counts().evicted, 1u);
  EXPECT_EQ(scarce.footprint(), ample.footprint());
  expectRestored(scarce, second, {0});
  scarce.release();
  EXPECT_EQ(memory.used(), 0u);
}

// Found by measuring 1,000 peers: each kept 128 symbols (0.2 MB), although parities could only
// cover the last ten.
TEST_F(BlockDecoderTest, WhatComesWithinTheTimeToKeepIsThereAndTakesNoMoreMemoryThanThat) {
  constexpr Duration kKeep = 100ms;
  size_t others = 0;  // bytes of blocks and parities
  for (Duration apart : std::initializer_list<Duration>{30ms, 7ms, 1ms, 200us}) {
    SCOPED_TRACE(testing::Message() << apart / 1us << " us apart");
    BlockDecoder timed(DecoderOptions{128, 1024, 8, 16});
    timed.keepFor(kKeep);
    const Bytes other(100, 7);
    const ByteView piece(other);
    Time now{};
    uint64_t pn = 0;
    const auto come = [&](Time until) {
      for (; now < until; now += apart) timed.onSymbol(0, pn++, {&piece, 1}, now);
    };
    for (uint16_t id = 0; id < 50; ++id) {
      const CodedBlock block = make(id, {{0, pn, 2}}, 1);
      const ByteView first(block.symbols[0]);
      timed.onSymbol(0, pn, {&first, 1}, now);
      pn += 2;  // the second one is lost
      come(now + kKeep - 1ms);
      ASSERT_EQ(block.protect(timed, 0), Verdict::kTaken);
      expectRestored(timed, block, {1});
    }
    const auto within = static_cast<size_t>(kKeep / apart) + 3;
    const size_t places = std::max(BlockDecoder::kFirstPlaces, std::bit_ceil(within));
    if (others == 0)
      others = timed.footprint() - SymbolRing::footprint(128, BlockDecoder::kFirstPlaces);
    EXPECT_EQ(timed.footprint(), SymbolRing::footprint(128, places) + others);
  }
}

TEST_F(BlockDecoderTest, WhatIsRestoredTakesThePlaceOfNoneThatCameNotLongAgo) {
  BlockDecoder timed(DecoderOptions{128, 1024, 8, 16});
  const CodedBlock early = make(1, {{0, 0, 1}, {0, 17, 1}}, 1);
  const CodedBlock late = make(2, {{0, 15, 2}}, 1);
  early.send(timed, 0);
  const Bytes other(100, 7);
  const ByteView piece(other);
  for (uint64_t pn = 1; pn < 15; ++pn) timed.onSymbol(0, pn, {&piece, 1}, Time{});
  late.send(timed, 0);
  EXPECT_EQ(late.protect(timed, 0), Verdict::kTaken);
  expectRestored(timed, late, {1});  // packet 16, which has the place of packet 0 among sixteen
  EXPECT_EQ(early.protect(timed, 0), Verdict::kTaken);
  expectRestored(timed, early, {1});
}

TEST_F(BlockDecoderTest, UnreadSymbolsHoldTheirMemoryButNothingBreaks) {
  BlockDecoder small(DecoderOptions{128, 64, 8, 2});
  std::vector<CodedBlock> blocks;
  for (uint16_t id = 0; id < 3; ++id) {
    blocks.push_back(make(id, {{0, uint64_t{id} * 2, 2}}, 1));
    blocks[id].send(small, 0);
  }
  EXPECT_EQ(blocks[0].protect(small, 0), Verdict::kTaken);
  EXPECT_EQ(blocks[1].protect(small, 0), Verdict::kTaken);
  EXPECT_EQ(blocks[2].protect(small, 0), Verdict::kUseless);
  BlockDecoder::Restored first, second;
  ASSERT_TRUE(small.poll(first));
  ASSERT_TRUE(small.poll(second)) << "frees what the first poll gave out";
  EXPECT_EQ(blocks[2].protect(small, 0), Verdict::kTaken);
  EXPECT_TRUE(std::ranges::equal(second.symbol, blocks[1].padded(1))) << "still valid";
  expectRestored(small, blocks[2], {1});
}

TEST_F(BlockDecoderTest, EmptyAndTooLargeSymbolsAreIgnored) {
  CodedBlock block = make(1, {{0, 0, 2}}, 1);
  block.protect(decoder, 0);
  decoder.onSymbol(0, 1, {}, Time{});
  const Bytes large(DecoderOptions{}.symbolCapacity + 1);
  const ByteView piece(large);
  decoder.onSymbol(0, 1, {&piece, 1}, Time{});
  decoder.onSymbol(0, uint64_t{1} << 62, std::array{ByteView(large).first(1)}, Time{});
  decoder.onSymbol(0, UINT64_MAX, std::array{ByteView(large).first(1)}, Time{});
  EXPECT_TRUE(drain(decoder).empty());
  block.send(decoder, 0);
  expectRestored(decoder, block, {1});
}

TEST_F(BlockDecoderTest, SymbolsOfPiecesAreJoined) {
  CodedBlock block = make(1, {{0, 0, 2}}, 1, 90);
  const Bytes& whole = block.symbols[0];
  const size_t cut = whole.size() / 2;
  const std::array<ByteView, 3> pieces{ByteView(whole).first(cut), ByteView(),
                                       ByteView(whole).subspan(cut)};
  decoder.onSymbol(0, 0, pieces, Time{});
  block.protect(decoder, 0);
  expectRestored(decoder, block, {1});
}

}  // namespace
}  // namespace braid::block_decoder_test
