#include "base/bytes.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace braid::bytes_test {
namespace {

// RFC 9000 appendix A.1.
TEST(Varint, ReadsTheExamplesOfTheRfc) {
  struct {
    std::vector<uint8_t> bytes;
    uint64_t value;
  } examples[] = {{{0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c}, 151288809941952652},
                  {{0x9d, 0x7f, 0x3e, 0x7d}, 494878333},
                  {{0x7b, 0xbd}, 15293},
                  {{0x25}, 37},
                  {{0x40, 0x25}, 37}};
  for (const auto& e : examples) {
    Reader in(e.bytes);
    EXPECT_EQ(in.varint(), e.value);
    EXPECT_TRUE(in.ok());
    EXPECT_EQ(in.remaining(), 0u);
  }
}

TEST(Varint, RoundTripsInTheShortestForm) {
  Random random(1);
  for (int i = 0; i < 10000; ++i) {
    uint64_t v = random.next() >> (2 + random.below(62));
    std::vector<uint8_t> bytes(8);
    Writer out(bytes);
    out.varint(v);
    ASSERT_TRUE(out.ok());
    ASSERT_EQ(out.size(), varintSize(v));
    Reader in(ByteView(bytes).first(out.size()));
    ASSERT_EQ(in.varint(), v);
  }
}

TEST(Reader, PastTheEndGivesZerosForGood) {
  std::vector<uint8_t> bytes{1, 2, 3};
  Reader in(bytes);
  EXPECT_EQ(in.u16(), 0x0102);
  EXPECT_EQ(in.u32(), 0u);
  EXPECT_FALSE(in.ok());
  EXPECT_EQ(in.u8(), 0u) << "the byte that is left is not read any more";
  EXPECT_TRUE(in.take(1).empty());
}

TEST(Writer, WritesNothingThatDoesNotFit) {
  std::vector<uint8_t> bytes(3, 0xaa);
  Writer out(bytes);
  out.u16(0x0102);
  out.u32(7);
  EXPECT_FALSE(out.ok());
  out.u8(9);
  EXPECT_EQ(out.size(), 2u);
  EXPECT_EQ(bytes, (std::vector<uint8_t>{1, 2, 0xaa}));
}

TEST(Numbers, AreBigEndian) {
  uint8_t b[8];
  store64(b, 0x0102030405060708);
  for (uint8_t i = 0; i < 8; ++i) EXPECT_EQ(b[i], i + 1);
  EXPECT_EQ(load16(b), 0x0102);
  EXPECT_EQ(load32(b), 0x01020304u);
  EXPECT_EQ(load64(b), 0x0102030405060708u);
}

}  // namespace
}  // namespace braid::bytes_test
