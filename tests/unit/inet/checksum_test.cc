#include "inet/ip.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/unit/inet/packets.h"

namespace braid::checksum_test {
namespace {

using test::Bytes;

TEST(ChecksumTest, ExampleOfRfc1071) {
  const Bytes data = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
  EXPECT_EQ(foldSum(sumBytes(data)), 0xddf2);
  EXPECT_EQ(internetChecksum(data), static_cast<uint16_t>(~0xddf2));
}

TEST(ChecksumTest, OddLengthsCountAZero) {
  EXPECT_EQ(sumBytes(Bytes{}), 0u);
  EXPECT_EQ(foldSum(sumBytes(Bytes{0x12})), 0x1200);
  EXPECT_EQ(foldSum(sumBytes(Bytes{0x12, 0x34, 0x56})), 0x6834);
  EXPECT_EQ(foldSum(sumBytes(Bytes{0x12, 0x34, 0x00, 0x00, 0x56})), 0x6834);
}

// Any length, any alignment, and bytes that cause repeated carries.
TEST(ChecksumTest, SameAsWordByWord) {
  constexpr uint64_t kSeed = 12;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random(kSeed);
  for (size_t size = 0; size < 200; ++size) {
    for (bool large : {false, true}) {
      Bytes data(8 + size);
      for (uint8_t& b : data)
        b = static_cast<uint8_t>(large ? 0xff - random.below(2) : random.next());
      ByteView some = ByteView(data).subspan(random.below(8), size);
      uint64_t expected = 0x12345;
      for (size_t i = 0; i < size; ++i) expected += uint64_t{some[i]} << (i % 2 ? 0 : 8);
      ASSERT_EQ(foldSum(sumBytes(some, 0x12345)), foldSum(expected)) << size;
    }
  }
}

TEST(ChecksumTest, CarriesWrapAround) {
  EXPECT_EQ(foldSum(0x1ffff), 1);
  EXPECT_EQ(foldSum(0xffffffffffffffff), 0xffff);
  EXPECT_EQ(foldSum(sumBytes(Bytes(65536, 0xff))), 0xffff);
}

TEST(ChecksumTest, KnownIpv4Header) {
  const Bytes header = {0x45, 0x00, 0x00, 0x73, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11,
                        0x00, 0x00, 0xc0, 0xa8, 0x00, 0x01, 0xc0, 0xa8, 0x00, 0xc7};
  EXPECT_EQ(internetChecksum(header), 0xb861);
}

TEST(ChecksumTest, TransportChecksumCoversThePseudoHeader) {
  Address src = test::addr("10.0.0.1"), dst = test::addr("10.0.0.2");
  const Bytes segment = test::udp(1, 2, {0xaa});
  // 0a00+0001+0a00+0002 + 0011+0009 + 0001+0002+0009+0000+aa00
  EXPECT_EQ(transportChecksum(src, dst, ip::kUdp, segment), static_cast<uint16_t>(~0xbe29));
  EXPECT_EQ(pseudoHeaderSum(test::addr("::1"), test::addr("::2"), ip::kIcmpV6, 100),
            1u + 2 + 58 + 100);
}

TEST(UpdateChecksumTest, ExampleOfRfc1624) {
  // Section 4: the sum becomes 0xffff, for which equation 2 fails.
  EXPECT_EQ(updateChecksum(0xdd2f, 0x5555, 0x3285), 0x0000);
}

TEST(UpdateChecksumTest, SameAsAnew) {
  constexpr uint64_t kSeed = 11;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random(kSeed);
  for (int round = 0; round < 2000; ++round) {
    Bytes data(2 +
               2 * (2 + random.below(20)));  // its last word never changes, so the sum is never 0
    for (size_t i = 2; i < data.size(); ++i) data[i] = static_cast<uint8_t>(random.below(4) * 85);
    data.back() |= 1;
    store16(&data[0], internetChecksum(data));
    bool wrong = random.chance(0.3);
    if (wrong) data[0] ^= 1 + random.below(255);
    size_t at = 2 + 2 * random.below((data.size() - 4) / 2);
    replaceWord(&data[at], static_cast<uint16_t>(random.below(4) * 0x5555), &data[0]);
    EXPECT_EQ(foldSum(sumBytes(data)) == 0xffff, !wrong) << "round " << round;
  }
}

}  // namespace
}  // namespace braid::checksum_test
