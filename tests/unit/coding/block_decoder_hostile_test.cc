// Tails, and violations of the protocol by a peer. Each test names its rule.

#include <gtest/gtest.h>

#include "tests/unit/coding/coded_block.h"

namespace braid::block_decoder_hostile_test {
namespace {

class HostileParity : public testing::Test {
 protected:
  // The result of a changed block description, with a new decoder and a complete parity.
  template <class Change>
  Verdict after(Change change) {
    BlockDecoder fresh(DecoderOptions{});
    CodedBlock changed = block;
    change(changed.description);
    Bytes part(changed.description.symbolSize > 0 ? changed.description.symbolSize : 1);
    const Verdict verdict = fresh.onParity(changed.description, 0, part);
    EXPECT_TRUE(drain(fresh).empty());
    return verdict;
  }

  static constexpr uint64_t kLast = (uint64_t{1} << 62) - 1;
  Random random{2};
  CodedBlock block = makeBlock(random, 9, {{0, 10, 3}, {1, 20, 3}}, 3, 90);
  BlockDecoder decoder{DecoderOptions{}};
};

TEST_F(HostileParity, UnchangedIsTaken) {
  EXPECT_EQ(after([](BlockDescription&) {}), Verdict::kTaken);
}
TEST_F(HostileParity, NoParities) {
  EXPECT_EQ(after([](BlockDescription& d) { d.parities = 0; }), Verdict::kBad);
}
TEST_F(HostileParity, TooManyParities) {
  EXPECT_EQ(after([](BlockDescription& d) { d.parities = 16; }), Verdict::kTaken);
  EXPECT_EQ(after([](BlockDescription& d) { d.parities = 17; }), Verdict::kBad);
  EXPECT_EQ(after([](BlockDescription& d) { d.parities = 255; }), Verdict::kBad);
}
TEST_F(HostileParity, NoRanges) {
  EXPECT_EQ(after([](BlockDescription& d) { d.rangeCount = 0; }), Verdict::kBad);
}
TEST_F(HostileParity, TooManyRanges) {
  EXPECT_EQ(after([](BlockDescription& d) { d.rangeCount = kMaxBlockSymbols + 1; }), Verdict::kBad);
  EXPECT_EQ(after([](BlockDescription& d) { d.rangeCount = SIZE_MAX; }), Verdict::kBad);
}
TEST_F(HostileParity, EmptyRange) {
  EXPECT_EQ(after([](BlockDescription& d) { d.ranges[1].count = 0; }), Verdict::kBad);
}
TEST_F(HostileParity, TooManySymbols) {
  EXPECT_EQ(after([](BlockDescription& d) { d.ranges[1].count = 125; }), Verdict::kTaken);
  EXPECT_EQ(after([](BlockDescription& d) { d.ranges[1].count = 126; }), Verdict::kBad);
  EXPECT_EQ(after([](BlockDescription& d) { d.ranges[1].count = 129; }), Verdict::kBad);
}
TEST_F(HostileParity, CountsThatOverflow) {
  EXPECT_EQ(after([](BlockDescription& d) { d.ranges[0].count = UINT32_MAX; }), Verdict::kBad);
  EXPECT_EQ(after([](BlockDescription& d) { d.ranges[0].count = d.ranges[1].count = 0x80000001; }),
            Verdict::kBad);
}
TEST_F(HostileParity, OverlappingRanges) {
  auto second = [&](SymbolRange range) {
    return after([=](BlockDescription& d) { d.ranges[1] = range; });
  };
  EXPECT_EQ(second({0, 12, 1}), Verdict::kBad);
  EXPECT_EQ(second({0, 8, 3}), Verdict::kBad);
  EXPECT_EQ(second({0, 11, 1}), Verdict::kBad);
  EXPECT_EQ(second({0, 0, 100}), Verdict::kBad);
  EXPECT_EQ(second({0, 13, 1}), Verdict::kTaken);
  EXPECT_EQ(second({0, 7, 3}), Verdict::kTaken);
  EXPECT_EQ(second({1, 10, 3}), Verdict::kTaken);
}
TEST_F(HostileParity, RepeatedRange) {
  EXPECT_EQ(after([](BlockDescription& d) { d.ranges[1] = d.ranges[0]; }), Verdict::kBad);
}
TEST_F(HostileParity, PacketNumbersBeyondTheLast) {
  auto first = [&](uint64_t pn) {
    return after([=](BlockDescription& d) { d.ranges[0].first = pn; });
  };
  EXPECT_EQ(first(kLast - 2), Verdict::kTaken);
  EXPECT_EQ(first(kLast - 1), Verdict::kBad);
  EXPECT_EQ(first(UINT64_MAX), Verdict::kBad);
  EXPECT_EQ(first(UINT64_MAX - 1), Verdict::kBad);
}
TEST_F(HostileParity, NoSymbolSize) {
  EXPECT_EQ(after([](BlockDescription& d) { d.symbolSize = 0; }), Verdict::kBad);
}
TEST_F(HostileParity, SymbolSizeAboveTheCapacity) {
  EXPECT_EQ(after([](BlockDescription& d) { d.symbolSize = 2048; }), Verdict::kTaken);
  EXPECT_EQ(after([](BlockDescription& d) { d.symbolSize = 2049; }), Verdict::kBad);
  EXPECT_EQ(after([](BlockDescription& d) { d.symbolSize = 65535; }), Verdict::kBad);
}
TEST_F(HostileParity, IndexOfNoParity) {
  EXPECT_EQ(decoder.onParity(block.description, 3, block.parities[0]), Verdict::kBad);
  EXPECT_EQ(decoder.onParity(block.description, SIZE_MAX, block.parities[0]), Verdict::kBad);
  EXPECT_EQ(decoder.onParity(block.description, 2, block.parities[2]), Verdict::kTaken);
  EXPECT_EQ(decoder.onParity(block.description, 3, block.parities[0]), Verdict::kBad)
      << "of an open block";
}
TEST_F(HostileParity, PartOfAWrongSize) {
  EXPECT_EQ(decoder.onParity(block.description, 0, {}), Verdict::kBad);
  Bytes longer = block.parities[0];
  longer.push_back(0);
  EXPECT_EQ(decoder.onParity(block.description, 0, longer), Verdict::kBad);
}

TEST_F(HostileParity, ASecondDescriptionOfABlock) {
  ASSERT_EQ(block.protect(decoder, 0), Verdict::kTaken);
  auto second = [&](auto change) {
    BlockDescription changed = block.description;
    change(changed);
    return decoder.onParity(changed, 1, ByteView(block.parities[1]).first(1));
  };
  EXPECT_EQ(second([](BlockDescription& d) { d.parities = 4; }), Verdict::kBad);
  EXPECT_EQ(second([](BlockDescription& d) { ++d.symbolSize; }), Verdict::kBad);
  EXPECT_EQ(second([](BlockDescription& d) { --d.rangeCount; }), Verdict::kBad);
  EXPECT_EQ(second([](BlockDescription& d) { d.ranges[1].first = 21; }), Verdict::kBad);
  EXPECT_EQ(second([](BlockDescription& d) { d.ranges[1].count = 4; }), Verdict::kBad);
  EXPECT_EQ(second([](BlockDescription& d) { d.ranges[1].subflow = 2; }), Verdict::kBad);
  EXPECT_EQ(second([](BlockDescription& d) { std::swap(d.ranges[0], d.ranges[1]); }),
            Verdict::kBad);
  EXPECT_EQ(block.protect(decoder, 1), Verdict::kTaken) << "the block has not suffered";
  for (size_t j : {1, 2, 4, 5}) block.send(decoder, j);
  expectRestored(decoder, block, {0, 3});
}

TEST_F(HostileParity, ASymbolLongerThanTheBlockSays) {
  block.send(decoder, 0);
  block.send(decoder, 1);
  BlockDescription lie = block.description;
  lie.symbolSize =
      static_cast<uint16_t>(std::max(block.symbols[0].size(), block.symbols[1].size()) - 1);
  EXPECT_EQ(decoder.onParity(lie, 0, Bytes(1)), Verdict::kBad);
}

TEST_F(HostileParity, ASymbolThatShowsLaterThatTheBlockLied) {
  BlockDescription lie = block.description;
  lie.symbolSize = 1;
  EXPECT_EQ(decoder.onParity(lie, 0, Bytes(1)), Verdict::kTaken);
  EXPECT_EQ(decoder.onParity(lie, 1, Bytes(1)), Verdict::kTaken);
  for (size_t j = 0; j < 6; ++j) block.send(decoder, j);
  EXPECT_TRUE(drain(decoder).empty());
  EXPECT_EQ(decoder.onParity(lie, 2, Bytes(1)), Verdict::kUseless);
  CodedBlock honest = makeBlock(random, 10, {{0, 30, 3}}, 1, 90);
  EXPECT_EQ(honest.protect(decoder, 0), Verdict::kTaken);
  honest.send(decoder, 0);
  honest.send(decoder, 2);
  expectRestored(decoder, honest, {1});
}

// Symbols restored from false parities must not keep out the subflow's real symbols. Found by
// review: the same symbols could be used by any number of blocks, so that each parity cost a
// multiplication with all of them.
TEST_F(HostileParity, SymbolsThatComeOnceAreNotMultipliedForever) {
  constexpr uint32_t kCome = kMaxBlockSymbols - kMaxBlockParities;
  const Bytes byte{7};
  const ByteView piece(byte);
  auto come = [&](uint64_t from) {
    for (uint64_t pn = from; pn < from + kCome; ++pn) decoder.onSymbol(0, pn, {&piece, 1}, Time{});
  };
  come(0);
  BlockDescription d;
  d.parities = kMaxBlockParities;
  d.symbolSize = 1;
  d.rangeCount = 2;
  d.ranges[0] = {0, 0, kCome};
  auto protect = [&] {
    ++d.block;
    d.ranges[1] = {1, 1000u * d.block, kMaxBlockParities};
    for (size_t i = 0; i < kMaxBlockParities; ++i) decoder.onParity(d, i, byte);
    drain(decoder);
  };
  for (int i = 0; i < 100; ++i) protect();
  EXPECT_EQ(decoder.counts().blocksDecoded, 36u) << "32 full ones, of which these have 112 symbols";
  come(10000);
  protect();
  EXPECT_EQ(decoder.counts().blocksDecoded, 37u) << "as many came again";
}

TEST_F(HostileParity, RestoredPacketNumbersFarAhead) {
  BlockDecoder small(DecoderOptions{128, 8, 8, 16});
  CodedBlock far = makeBlock(random, 1, {{0, kLast - 7, 8}}, 8, 50);
  const ByteView piece(far.symbols[0]);
  small.onSymbol(0, 0, {&piece, 1}, Time{});
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(far.protect(small, i), Verdict::kTaken);
  EXPECT_EQ(drain(small).size(), 8u);
  CodedBlock honest = makeBlock(random, 2, {{0, 1, 8}}, 1, 50);
  for (size_t j = 0; j < 7; ++j) honest.send(small, j);
  EXPECT_EQ(honest.protect(small, 0), Verdict::kTaken);
  expectRestored(small, honest, {7});
}

class Tail : public HostileParity {
 protected:
  size_t size = block.description.symbolSize;
};

TEST_F(Tail, CompletesItsHead) {
  for (size_t j : {0, 1, 2, 3}) block.send(decoder, j);
  for (size_t i : {0, 2}) {
    EXPECT_EQ(block.onlyHead(decoder, i, size / 2), Verdict::kTaken);
    EXPECT_TRUE(drain(decoder).empty());
    EXPECT_EQ(block.onlyTail(decoder, i, size / 2), Verdict::kTaken);
  }
  expectRestored(decoder, block, {4, 5});
  EXPECT_EQ(block.onlyTail(decoder, 1, size / 2), Verdict::kUseless) << "decoded";
  EXPECT_EQ(decoder.counts().wholeParities, 2u);
}
TEST_F(Tail, WithoutItsHead) {
  EXPECT_EQ(block.onlyTail(decoder, 0, size / 2), Verdict::kUseless) << "no block";
  EXPECT_EQ(block.protect(decoder, 1), Verdict::kTaken);
  EXPECT_EQ(block.onlyTail(decoder, 0, size / 2), Verdict::kUseless) << "no parity";
}
TEST_F(Tail, OfAWholeParity) {
  EXPECT_EQ(block.protect(decoder, 1), Verdict::kTaken);
  EXPECT_EQ(block.onlyTail(decoder, 1, size / 2), Verdict::kUseless);
}
TEST_F(Tail, Twice) {
  EXPECT_EQ(block.onlyHead(decoder, 0, 10), Verdict::kTaken);
  EXPECT_EQ(block.onlyTail(decoder, 0, 10), Verdict::kTaken);
  EXPECT_EQ(block.onlyTail(decoder, 0, 10), Verdict::kUseless);
  EXPECT_EQ(decoder.counts().wholeParities, 1u);
}
TEST_F(Tail, AtAWrongOffset) {
  EXPECT_EQ(block.onlyHead(decoder, 0, 10), Verdict::kTaken);
  EXPECT_EQ(block.onlyTail(decoder, 0, 9), Verdict::kBad);
  EXPECT_EQ(block.onlyTail(decoder, 0, 11), Verdict::kBad);
  EXPECT_EQ(block.onlyTail(decoder, 0, 0), Verdict::kBad);
  EXPECT_EQ(block.onlyTail(decoder, 0, 10), Verdict::kTaken);
}
TEST_F(Tail, ThatDoesNotReachTheEnd) {
  EXPECT_EQ(block.onlyHead(decoder, 0, 10), Verdict::kTaken);
  const ByteView rest = ByteView(block.parities[0]).subspan(10);
  EXPECT_EQ(decoder.onTail(9, 0, 10, rest.first(rest.size() - 1)), Verdict::kBad);
  Bytes longer(rest.begin(), rest.end());
  longer.push_back(0);
  EXPECT_EQ(decoder.onTail(9, 0, 10, longer), Verdict::kBad);
  EXPECT_EQ(decoder.onTail(9, 0, 10, {}), Verdict::kBad);
  EXPECT_EQ(decoder.onTail(9, 0, SIZE_MAX, rest), Verdict::kBad);
  EXPECT_EQ(decoder.onTail(9, 0, SIZE_MAX - rest.size() + 1, rest), Verdict::kBad);
}
TEST_F(Tail, WithAnIndexOfNoParity) {
  EXPECT_EQ(block.onlyHead(decoder, 0, 10), Verdict::kTaken);
  EXPECT_EQ(decoder.onTail(9, 3, 10, Bytes(size - 10)), Verdict::kBad);
  EXPECT_EQ(decoder.onTail(9, 16, 10, Bytes(size - 10)), Verdict::kBad);
  EXPECT_EQ(decoder.onTail(77, SIZE_MAX, 10, Bytes(size - 10)), Verdict::kBad);
}
TEST_F(Tail, AHeadThatComesAgain) {
  EXPECT_EQ(block.onlyHead(decoder, 0, 10), Verdict::kTaken);
  EXPECT_EQ(block.onlyHead(decoder, 0, 10), Verdict::kUseless);
  EXPECT_EQ(block.onlyHead(decoder, 0, 5), Verdict::kUseless);
  EXPECT_EQ(block.onlyHead(decoder, 0, 20), Verdict::kTaken) << "a longer one replaces it";
  EXPECT_EQ(block.onlyTail(decoder, 0, 20), Verdict::kTaken);
  for (size_t j = 1; j < 6; ++j) block.send(decoder, j);
  expectRestored(decoder, block, {0});
}
TEST_F(Tail, AHeadAloneDoesNotCount) {
  for (size_t j = 1; j < 6; ++j) block.send(decoder, j);
  EXPECT_EQ(block.onlyHead(decoder, 0, size - 1), Verdict::kTaken);
  EXPECT_TRUE(drain(decoder).empty());
  EXPECT_EQ(decoder.counts().wholeParities, 0u);
  EXPECT_EQ(block.protect(decoder, 1), Verdict::kTaken);
  expectRestored(decoder, block, {0});
}

}  // namespace
}  // namespace braid::block_decoder_hostile_test
