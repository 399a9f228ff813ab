#pragma once

// A block as a sender makes it, and functions that deliver its parts to a decoder.

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/random.h"
#include "coding/block_decoder.h"
#include "coding/block_encoder.h"

namespace braid {

using Bytes = std::vector<uint8_t>;
using Verdict = BlockDecoder::Verdict;

struct CodedBlock {
  BlockDescription description;
  std::vector<Bytes> symbols;
  std::vector<Bytes> parities;

  size_t k() const { return symbols.size(); }
  size_t m() const { return parities.size(); }

  SymbolRange place(size_t column) const {
    for (const SymbolRange& range : description.ranges) {
      if (column < range.count) return {range.subflow, range.first + column, 1};
      column -= range.count;
    }
    return {};
  }
  /// Symbol `column` arrives.
  void send(BlockDecoder& decoder, size_t column) const {
    const ByteView piece(symbols[column]);
    decoder.onSymbol(place(column).subflow, place(column).first, {&piece, 1}, Time{});
  }
  /// Parity `index` arrives whole.
  Verdict protect(BlockDecoder& decoder, size_t index) const {
    return decoder.onParity(description, index, parities[index]);
  }
  /// The first `size` bytes of parity `index` arrive.
  Verdict onlyHead(BlockDecoder& decoder, size_t index, size_t size) const {
    return decoder.onParity(description, index, ByteView(parities[index]).first(size));
  }
  /// The part behind the first `size` bytes arrives.
  Verdict onlyTail(BlockDecoder& decoder, size_t index, size_t size) const {
    return decoder.onTail(description.block, index, size, ByteView(parities[index]).subspan(size));
  }
  /// The symbol that decoding must give for a column.
  Bytes padded(size_t column) const {
    Bytes bytes = symbols[column];
    bytes.resize(description.symbolSize);
    return bytes;
  }
};

/// Random symbols of 1 to `longest` bytes in these ranges.
inline CodedBlock makeBlock(Random& random, uint16_t id, const std::vector<SymbolRange>& ranges,
                            size_t m, size_t longest) {
  CodedBlock made;
  made.description.block = id;
  made.description.parities = static_cast<uint8_t>(m);
  made.description.rangeCount = ranges.size();
  std::ranges::copy(ranges, made.description.ranges.begin());
  BlockEncoder encoder(longest);
  encoder.begin();
  for (size_t i = 0; i < made.description.symbols(); ++i) {
    Bytes bytes(1 + random.below(longest));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.next());
    const ByteView piece(bytes);
    EXPECT_TRUE(encoder.add({&piece, 1}));
    made.symbols.push_back(bytes);
  }
  made.description.symbolSize = static_cast<uint16_t>(encoder.symbolSize());
  for (size_t i = 0; i < m; ++i) {
    ByteView parity = encoder.parity(i);
    made.parities.emplace_back(parity.begin(), parity.end());
  }
  return made;
}

struct Got {
  uint16_t block;
  uint8_t subflow;
  uint64_t pn;
  Bytes symbol;
};

/// Takes everything that the decoder has restored.
inline std::vector<Got> drain(BlockDecoder& decoder) {
  std::vector<Got> all;
  BlockDecoder::Restored out;
  while (decoder.poll(out)) {
    all.push_back({out.block, out.subflow, out.pn, Bytes(out.symbol.begin(), out.symbol.end())});
  }
  return all;
}

/// Expects that exactly these columns of the block have been restored.
inline void expectRestored(BlockDecoder& decoder, const CodedBlock& block,
                           const std::vector<size_t>& columns) {
  std::vector<Got> got = drain(decoder);
  ASSERT_EQ(got.size(), columns.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_EQ(got[i].block, block.description.block);
    EXPECT_EQ(got[i].subflow, block.place(columns[i]).subflow);
    EXPECT_EQ(got[i].pn, block.place(columns[i]).first);
    ASSERT_EQ(got[i].symbol, block.padded(columns[i])) << "column " << columns[i];
  }
}

}  // namespace braid
