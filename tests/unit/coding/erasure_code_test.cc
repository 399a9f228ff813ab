#include "coding/erasure_code.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "coding/symbols.h"
#include "tests/unit/coding/naive_field.h"

namespace braid::erasure_code_test {
namespace {

using naive::Bytes;

const naive::Matrix& generator() {
  static const naive::Matrix matrix = naive::generator(kMaxBlockSymbols, kMaxBlockParities);
  return matrix;
}

Bytes randomBytes(Random& random, size_t size) {
  Bytes bytes(size);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.next());
  return bytes;
}

/// Symbols and parities in the memory layout that the code needs, and as vectors.
class Block {
 public:
  Block(Random& random, size_t k, size_t longest)
      : symbols_(longest, k), parities_(longest, kMaxBlockParities), size_(longest) {
    for (size_t j = 0; j < k; ++j) {
      plain.push_back(randomBytes(random, j == 0 ? longest : 1 + random.below(longest)));
      const ByteView view(plain[j]);
      joinSymbol(symbols_[j], {&view, 1});
    }
  }
  ErasureCode::Symbol symbol(size_t column) const {
    return {column, {symbols_[column], plain[column].size()}};
  }
  ByteSpan cleared(size_t i) const {
    std::memset(parities_[i], 0, paddedSymbol(size_));
    return {parities_[i], size_};
  }
  size_t size() const { return size_; }

  std::vector<Bytes> plain;

 private:
  SymbolStore symbols_, parities_;
  size_t size_;
};

/// Loses the symbols in `lost`, restores them from the parities in `used` and compares.
void expectRestored(const Block& block, const std::vector<size_t>& lost,
                    const std::vector<size_t>& used) {
  std::vector<ErasureCode::Symbol> present;
  for (size_t j = 0; j < block.plain.size(); ++j) {
    if (std::ranges::find(lost, j) == lost.end()) present.push_back(block.symbol(j));
  }
  std::vector<uint8_t*> buffers;
  for (size_t i = 0; i < used.size(); ++i) {
    ByteSpan buffer = block.cleared(i);
    Bytes parity = naive::parity(generator()[used[i]], block.plain);
    std::ranges::copy(parity, buffer.begin());
    ErasureCode::addTo(buffer, used[i], present);
    buffers.push_back(buffer.data());
  }
  ErasureCode::restore(lost, used, buffers, block.size());
  for (size_t i = 0; i < lost.size(); ++i) {
    Bytes expected = block.plain[lost[i]];
    expected.resize(block.size());
    ASSERT_TRUE(std::ranges::equal(ByteView(buffers[i], block.size()), expected))
        << "column " << lost[i];
  }
}

std::vector<size_t> bits(size_t mask) {
  std::vector<size_t> out;
  for (size_t i = 0; mask >> i; ++i) {
    if (mask >> i & 1) out.push_back(i);
  }
  return out;
}

std::vector<size_t> draw(Random& random, size_t count, size_t of) {
  std::vector<size_t> all(of);
  for (size_t i = 0; i < of; ++i) all[i] = i;
  for (size_t i = 0; i < count; ++i) std::swap(all[i], all[i + random.below(of - i)]);
  all.resize(count);
  std::ranges::sort(all);
  return all;
}

TEST(ErasureCode, MatrixIsTheSystematicVandermonde) {
  for (size_t i = 0; i < kMaxBlockParities; ++i) {
    for (size_t j = 0; j < kMaxBlockSymbols; ++j) {
      ASSERT_EQ(ErasureCode::coefficient(i, j), generator()[i][j]) << i << ", " << j;
    }
  }
}

// The wire format depends on these values. They must not change with a release of the library.
TEST(ErasureCode, MatrixHasKnownValues) {
  const std::array<std::array<uint8_t, 6>, 3> known{
      {{1, 1, 1, 1, 1, 1}, {1, 89, 5, 230, 237, 182}, {1, 5, 124, 190, 72, 193}}};
  for (size_t i = 0; i < known.size(); ++i) {
    for (size_t j = 0; j < known[i].size(); ++j)
      EXPECT_EQ(ErasureCode::coefficient(i, j), known[i][j]);
  }
}

TEST(ErasureCode, FirstRowAndFirstColumnAreOnes) {
  for (size_t j = 0; j < kMaxBlockSymbols; ++j) EXPECT_EQ(ErasureCode::coefficient(0, j), 1);
  for (size_t i = 0; i < kMaxBlockParities; ++i) EXPECT_EQ(ErasureCode::coefficient(i, 0), 1);
}

TEST(ErasureCode, ParitiesEqualTheNaiveOnes) {
  const uint64_t seed = 11;
  SCOPED_TRACE(seed);
  Random random(seed);
  for (size_t k : {1, 2, 7, 8, 9, 17, 30, 128}) {
    for (size_t longest : {1, 63, 64, 65, 200, 1400}) {
      Block block(random, k, longest);
      std::vector<ErasureCode::Symbol> all;
      for (size_t j = 0; j < k; ++j) all.push_back(block.symbol(j));
      for (size_t i : {0, 1, 2, 15}) {
        Bytes expected = naive::parity(generator()[i], block.plain);
        ByteSpan together = block.cleared(0), oneByOne = block.cleared(1);
        ErasureCode::addTo(together, i, all);
        for (const auto& symbol : all) ErasureCode::addTo(oneByOne, i, symbol.column, symbol.bytes);
        ASSERT_TRUE(std::ranges::equal(together, expected))
            << k << " of " << longest << ", parity " << i;
        ASSERT_TRUE(std::ranges::equal(oneByOne, expected))
            << k << " of " << longest << ", parity " << i;
      }
    }
  }
}

// All bytes between a symbol's end and the next cache line stay zero.
TEST(ErasureCode, PaddingStaysZero) {
  Random random(5);
  Block block(random, 10, 70);
  for (size_t i = 0; i < 3; ++i) {
    ByteSpan parity = block.cleared(i);
    for (size_t j = 0; j < 10; ++j) {
      ErasureCode::addTo(parity, i, j, block.symbol(j).bytes);
    }
    for (size_t at = 70; at < 128; ++at) ASSERT_EQ(parity.data()[at], 0) << at;
  }
}

TEST(ErasureCode, NothingAddsNothing) {
  Random random(1);
  Block block(random, 1, 100);
  ByteSpan parity = block.cleared(0);
  ErasureCode::addTo(parity, 0, std::span<const ErasureCode::Symbol>{});
  ErasureCode::addTo(parity, 0, 3, {});
  ErasureCode::addTo(parity, 2, 3, {});
  ErasureCode::restore({}, {}, {}, 100);
  EXPECT_TRUE(std::ranges::all_of(parity, [](uint8_t byte) { return byte == 0; }));
}

TEST(ErasureCode, RestoresEveryPatternOfSmallBlocks) {
  Random random(7);
  for (size_t k = 1; k <= 6; ++k) {
    Block block(random, k, 40);
    for (size_t lost = 1; lost < size_t{1} << k; ++lost) {
      for (size_t used = 1; used < 8; ++used) {
        if (std::popcount(lost) != std::popcount(used)) continue;
        SCOPED_TRACE(testing::Message() << "K " << k << ", lost " << lost << ", parities " << used);
        expectRestored(block, bits(lost), bits(used));
      }
    }
  }
}

TEST(ErasureCode, RestoresRandomPatternsOfLargeBlocks) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    const size_t k = 1 + random.below(kMaxBlockSymbols);
    const size_t lost = 1 + random.below(std::min(k, kMaxBlockParities));
    Block block(random, k, 1 + random.below(100));
    expectRestored(block, draw(random, lost, k), draw(random, lost, kMaxBlockParities));
  }
}

// Every square submatrix must be invertible without exchanging rows. Tests all 2 x 2 ones, and the
// largest contiguous ones.
TEST(ErasureCode, EveryTwoByTwoPartIsRegular) {
  for (size_t i = 0; i < kMaxBlockParities; ++i) {
    for (size_t h = 0; h < i; ++h) {
      for (size_t j = 0; j < kMaxBlockSymbols; ++j) {
        for (size_t l = 0; l < j; ++l) {
          ASSERT_NE(
              naive::multiply(ErasureCode::coefficient(i, j), ErasureCode::coefficient(h, l)),
              naive::multiply(ErasureCode::coefficient(i, l), ErasureCode::coefficient(h, j)));
        }
      }
    }
  }
}

}  // namespace
}  // namespace braid::erasure_code_test
