#include "tunnel/wire/frame_payloads.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"
#include "tests/unit/tunnel/wire/frame_bytes.h"

namespace braid::parity_symbols_test {
namespace {

using Ranges = std::vector<SymbolRange>;

BlockDescription blockOf(const Ranges& ranges, uint8_t parities = 3, uint16_t symbolSize = 40) {
  BlockDescription block;
  block.block = 0xbeef;
  block.parities = parities;
  block.symbolSize = symbolSize;
  for (const SymbolRange& range : ranges) block.ranges[block.rangeCount++] = range;
  return block;
}

Bytes encodeParity(const BlockDescription& block, size_t index, const Bytes& part) {
  Bytes out(4096);
  Writer writer(out);
  writeParityHeader(writer, block, index, part.size());
  EXPECT_EQ(writer.size(), parityHeaderSize(block));
  writer.bytes(part);
  EXPECT_TRUE(writer.ok());
  out.resize(writer.size());
  return out;
}

Ranges rangesOf(const BlockDescription& block) {
  return {block.ranges.begin(), block.ranges.begin() + static_cast<ptrdiff_t>(block.rangeCount)};
}

/// The result at a receiver that expects packet number `next` on every subflow.
Ranges described(const ParityFrame& frame, uint64_t next) {
  return rangesOf(describe(frame, [next](SubflowId) { return PacketNumber(next); }));
}

/// PARITY of block 1, index 0 of M 1, symbol size 4, with these groups and parts of 4 bytes.
Bytes rawParity(const Bytes& groups, uint8_t index = 0, uint8_t parities = 1,
                uint16_t symbolSize = 4, const Bytes& part = {1, 2, 3, 4}) {
  Bytes b{0x09, 0, 1, index, parities};
  b.insert(b.end(), {static_cast<uint8_t>(symbolSize >> 8), static_cast<uint8_t>(symbolSize)});
  b.insert(b.end(), groups.begin(), groups.end());
  b.insert(b.end(), {static_cast<uint8_t>(part.size() >> 8), static_cast<uint8_t>(part.size())});
  b.insert(b.end(), part.begin(), part.end());
  return b;
}

TEST(Parity, OneRunTakesSeventeenBytesAndRoundTrips) {
  Bytes part{1, 2, 3, 4, 5};
  Bytes bytes = encodeParity(blockOf({{7, 1000, 10}}), 2, part);
  EXPECT_EQ(bytes.size(), 17u + part.size());
  ParityFrame frame = decodeOne<ParityFrame>(bytes);
  EXPECT_EQ(frame.block, 0xbeef_block);
  EXPECT_EQ(frame.index, 2);
  EXPECT_EQ(frame.parities, 3);
  EXPECT_EQ(frame.symbolSize, 40);
  EXPECT_EQ(Bytes(frame.part.begin(), frame.part.end()), part);
  EXPECT_EQ(described(frame, 1010), (Ranges{{7, 1000, 10}}));
}

TEST(Parity, RunsOfOneSubflowShareAGroup) {
  Ranges ranges{{7, 1000, 10}, {7, 1011, 1}, {7, 1100, 60}};
  Bytes bytes = encodeParity(blockOf(ranges), 0, {9});
  // Header 10 with the length of the part, group 6, first run 1, then gap and run: 1 + 1 and 2 + 1
  // bytes.
  EXPECT_EQ(bytes.size(), 10u + 6 + 1 + 2 + 3 + 1);
  EXPECT_EQ(described(decodeOne<ParityFrame>(bytes), 1200), ranges);
}

TEST(Parity, SubflowsAreGroupsInTheOrderOfTheColumns) {
  Ranges ranges{{7, 1000, 10}, {2, 5, 3}, {7, 2000, 1}};
  EXPECT_EQ(described(decodeOne<ParityFrame>(encodeParity(blockOf(ranges), 0, {9})), 1500), ranges);
}

TEST(Parity, RunsOutOfOrderOrFarApartAreGroupsOfTheirOwn) {
  for (const Ranges& ranges :
       {Ranges{{7, 1000, 2}, {7, 900, 2}}, Ranges{{7, 1000, 2}, {7, 1002 + (1 << 14), 2}},
        Ranges{{7, 1000, 2}, {7, 1001 + (1 << 14), 2}}}) {
    Bytes bytes = encodeParity(blockOf(ranges), 0, {9});
    bool near = ranges[1].first == 1001 + (1 << 14);
    EXPECT_EQ(bytes[7], near ? 1 : 2) << "groups";
    EXPECT_EQ(described(decodeOne<ParityFrame>(bytes), 1100), ranges);
  }
}

TEST(Parity, PacketNumbersExpandNextToWhatIsExpectedOnEachSubflow) {
  uint64_t base = uint64_t{5} << 32;
  Ranges ranges{{1, base - 2, 5}, {2, 0xfffffffeu, 5}};  // both runs cross a multiple of 2^32
  Bytes bytes = encodeParity(blockOf(ranges), 0, {9});
  ParityFrame frame = decodeOne<ParityFrame>(bytes);
  BlockDescription read = describe(frame, [&](SubflowId subflow) {
    return PacketNumber(subflow == 1_subflow ? base + 9 : 0x100000009);
  });
  EXPECT_EQ(rangesOf(read), ranges);
}

TEST(Parity, AnyBlockRoundTrips) {
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Random random(seed);
    BlockDescription block = blockOf({}, static_cast<uint8_t>(1 + random.below(16)),
                                     static_cast<uint16_t>(1 + random.below(65535)));
    size_t left = 1 + random.below(kMaxBlockSymbols);
    uint64_t next = (uint64_t{1} << 33) + random.below(1 << 20);
    while (left > 0) {
      auto count = static_cast<uint32_t>(1 + random.below(std::min<size_t>(left, 9)));
      if (random.chance(0.2)) next = (uint64_t{1} << 33) + random.below(1 << 20);
      next += 1 + random.below(random.chance(0.1) ? 40000 : 5);
      block.ranges[block.rangeCount++] = {static_cast<uint8_t>(random.below(3)), next, count};
      next += count;
      left -= count;
    }
    Bytes part(1 + random.below(std::min<size_t>(block.symbolSize, 300)), 0x5a);
    size_t index = random.below(block.parities);
    Bytes bytes = encodeParity(block, index, part);
    ParityFrame frame = decodeOne<ParityFrame>(bytes);
    ASSERT_EQ(frame.index, index) << "seed " << seed;
    ASSERT_EQ(frame.parities, block.parities) << "seed " << seed;
    ASSERT_EQ(frame.symbolSize, block.symbolSize) << "seed " << seed;
    ASSERT_EQ(described(frame, uint64_t{1} << 33), rangesOf(block)) << "seed " << seed;
    ASSERT_EQ(frame.part.size(), part.size()) << "seed " << seed;
  }
}

TEST(Parity, TheLargestDescriptionIsAccepted) {
  Ranges ranges;
  for (uint64_t i = 0; i < kMaxBlockSymbols; ++i) ranges.push_back({static_cast<uint8_t>(i), 5, 1});
  Bytes bytes = encodeParity(blockOf(ranges, 16, 65535), 15, {1});
  ParityFrame frame = decodeOne<ParityFrame>(bytes);
  EXPECT_EQ(described(frame, 6), ranges);
}

const Bytes kOneSymbol{1, 0, 0, 0, 0, 9, 1, 0};  // one group: subflow 0, packet 9, one run of 1

TEST(Parity, OneToSixteenParities) {
  RecordProperty("rule", "parity.parities");
  EXPECT_FALSE(malformed(rawParity(kOneSymbol)));
  EXPECT_FALSE(malformed(rawParity(kOneSymbol, 15, 16)));
  EXPECT_TRUE(malformed(rawParity(kOneSymbol, 0, 0)));
  EXPECT_TRUE(malformed(rawParity(kOneSymbol, 0, 17)));
}

TEST(Parity, TheIndexIsBelowTheirNumber) {
  RecordProperty("rule", "parity.index");
  EXPECT_FALSE(malformed(rawParity(kOneSymbol, 2, 3)));
  EXPECT_TRUE(malformed(rawParity(kOneSymbol, 3, 3)));
  EXPECT_TRUE(malformed(rawParity(kOneSymbol, 255, 3)));
}

TEST(Parity, ThePartIsNotEmptyAndNotLargerThanTheSymbol) {
  RecordProperty("rule", "parity.part parity.size");
  EXPECT_FALSE(malformed(rawParity(kOneSymbol, 0, 1, 4, {1})));
  EXPECT_TRUE(malformed(rawParity(kOneSymbol, 0, 1, 4, {})));
  EXPECT_TRUE(malformed(rawParity(kOneSymbol, 0, 1, 3)));
  EXPECT_TRUE(malformed(rawParity(kOneSymbol, 0, 1, 0, {})));
  EXPECT_TRUE(malformed(rawParity(kOneSymbol, 0, 1, 0)));
}

TEST(Parity, OneTo128Symbols) {
  RecordProperty("rule", "parity.symbols parity.runs");
  EXPECT_TRUE(malformed(rawParity({0}))) << "no group";
  EXPECT_TRUE(malformed(rawParity({1, 0, 0, 0, 0, 9, 0}))) << "a group without runs";
  EXPECT_FALSE(malformed(rawParity({1, 0, 0, 0, 0, 9, 1, 0x40, 127})));
  EXPECT_TRUE(malformed(rawParity({1, 0, 0, 0, 0, 9, 1, 0x40, 128})));
  EXPECT_TRUE(malformed(rawParity({2, 0, 0, 0, 0, 9, 1, 0x40, 127, 1, 0, 0, 0, 9, 1, 0})))
      << "129 in groups";
  EXPECT_TRUE(malformed(rawParity({1, 0, 0, 0, 0, 9, 2, 0x40, 127, 0, 0}))) << "129 in runs";
}

TEST(Parity, RunsAreLessThan16384Apart) {
  RecordProperty("rule", "parity.gap");
  EXPECT_FALSE(malformed(rawParity({1, 0, 0, 0, 0, 9, 2, 0, 0x7f, 0xff, 0})));
  EXPECT_TRUE(malformed(rawParity({1, 0, 0, 0, 0, 9, 2, 0, 0x80, 0, 0x40, 0, 0})));
}

TEST(Parity, EveryPrefixIsMalformed) {
  Bytes whole = encodeParity(blockOf({{1, 1000, 70}, {1, 1200, 3}, {2, 7, 1}}), 1, Bytes(40, 1));
  ASSERT_FALSE(malformed(whole));
  for (size_t n = 1; n < whole.size(); ++n)
    EXPECT_TRUE(malformed(Bytes(whole.begin(), whole.begin() + static_cast<ptrdiff_t>(n)))) << n;
}

}  // namespace
}  // namespace braid::parity_symbols_test
