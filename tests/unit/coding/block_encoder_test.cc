#include "coding/block_encoder.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/unit/coding/naive_field.h"

namespace braid::block_encoder_test {
namespace {

using naive::Bytes;

bool add(BlockEncoder& encoder, const Bytes& bytes) {
  const ByteView piece(bytes);
  return encoder.add({&piece, 1});
}

Bytes copy(ByteView view) {
  return {view.begin(), view.end()};
}

TEST(BlockEncoder, ParityZeroOfOneSymbolIsTheSymbol) {
  BlockEncoder encoder(100);
  encoder.begin();
  ASSERT_TRUE(add(encoder, {1, 2, 3}));
  EXPECT_EQ(copy(encoder.parity(0)), (Bytes{1, 2, 3}));
  EXPECT_EQ(copy(encoder.parity(5)), (Bytes{1, 2, 3})) << "the first column is ones";
}

TEST(BlockEncoder, PiecesAreJoined) {
  BlockEncoder encoder(100);
  encoder.begin();
  const Bytes a{1, 2}, b{3}, none;
  const std::array<ByteView, 4> pieces{a, none, b, a};
  ASSERT_TRUE(encoder.add(pieces));
  EXPECT_EQ(encoder.symbolSize(), 5u);
  EXPECT_EQ(copy(encoder.parity(0)), (Bytes{1, 2, 3, 1, 2}));
}

TEST(BlockEncoder, SizeIsThatOfTheLongest) {
  BlockEncoder encoder(100);
  encoder.begin();
  EXPECT_EQ(encoder.symbols(), 0u);
  EXPECT_EQ(encoder.symbolSize(), 0u);
  ASSERT_TRUE(add(encoder, Bytes(7, 1)));
  ASSERT_TRUE(add(encoder, Bytes(99, 2)));
  ASSERT_TRUE(add(encoder, Bytes(3, 4)));
  EXPECT_EQ(encoder.symbols(), 3u);
  EXPECT_EQ(encoder.symbolSize(), 99u);
  ByteView parity = encoder.parity(0);
  ASSERT_EQ(parity.size(), 99u);
  EXPECT_EQ(parity[2], 1 ^ 2 ^ 4);
  EXPECT_EQ(parity[6], 1 ^ 2);
  EXPECT_EQ(parity[98], 2);
}

TEST(BlockEncoder, SymbolsAreCopied) {
  BlockEncoder encoder(100);
  encoder.begin();
  Bytes bytes(50, 9);
  ASSERT_TRUE(add(encoder, bytes));
  std::ranges::fill(bytes, uint8_t{0});
  EXPECT_EQ(copy(encoder.parity(0)), Bytes(50, 9));
}

TEST(BlockEncoder, BeginForgetsTheBlockBefore) {
  BlockEncoder encoder(200);
  encoder.begin();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(add(encoder, Bytes(200, 0xff)));
  encoder.parity(1);
  encoder.begin();
  EXPECT_EQ(encoder.symbols(), 0u);
  EXPECT_EQ(encoder.symbolSize(), 0u);
  ASSERT_TRUE(add(encoder, {1}));
  ASSERT_TRUE(add(encoder, Bytes(150, 2)));
  Bytes expected(150, 2);
  expected[0] = 3;
  EXPECT_EQ(copy(encoder.parity(0)), expected);
}

TEST(BlockEncoder, RefusesTooLargeEmptyAndTooMany) {
  BlockEncoder encoder(10);
  EXPECT_FALSE(add(encoder, {1})) << "no block has begun";
  encoder.begin();
  EXPECT_FALSE(add(encoder, Bytes(11)));
  EXPECT_FALSE(add(encoder, {}));
  EXPECT_FALSE(encoder.add({}));
  EXPECT_EQ(encoder.symbols(), 0u);
  for (size_t i = 0; i < kMaxBlockSymbols; ++i) ASSERT_TRUE(add(encoder, Bytes(10, 1)));
  EXPECT_FALSE(add(encoder, Bytes(10, 1)));
  EXPECT_EQ(encoder.symbols(), kMaxBlockSymbols);
}

TEST(BlockEncoder, AnEmptyBlockHasEmptyParities) {
  BlockEncoder encoder(10);
  EXPECT_TRUE(encoder.parity(0).empty());
  encoder.begin();
  EXPECT_TRUE(encoder.parity(0).empty());
  EXPECT_TRUE(encoder.parity(3).empty());
}

TEST(BlockEncoder, ThereAreNoMoreParitiesThanTheCodeHas) {
  BlockEncoder encoder(10);
  encoder.begin();
  ASSERT_TRUE(add(encoder, {1}));
  EXPECT_EQ(encoder.parity(kMaxBlockParities - 1).size(), 1u);
  EXPECT_TRUE(encoder.parity(kMaxBlockParities).empty());
}

TEST(BlockEncoder, ParitiesEqualTheNaiveOnes) {
  const naive::Matrix generator = naive::generator(kMaxBlockSymbols, kMaxBlockParities);
  BlockEncoder encoder(300);
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Random random(seed);
    std::vector<Bytes> symbols(1 + random.below(kMaxBlockSymbols));
    encoder.begin();
    for (Bytes& symbol : symbols) {
      symbol.resize(1 + random.below(300));
      for (uint8_t& byte : symbol) byte = static_cast<uint8_t>(random.next());
      ASSERT_TRUE(add(encoder, symbol));
    }
    for (int i = 0; i < 4; ++i) {
      const size_t index = random.below(kMaxBlockParities);
      ASSERT_EQ(copy(encoder.parity(index)), naive::parity(generator[index], symbols))
          << "parity " << index;
    }
  }
}

}  // namespace
}  // namespace braid::block_encoder_test
