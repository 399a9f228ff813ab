#include "tunnel/wire/header.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace braid::header_test {
namespace {

using Bytes = std::vector<uint8_t>;

TEST(Header, RoundTripsEveryField) {
  Random random(1);
  for (int i = 0; i < 1000; ++i) {
    DatagramHeader h{
        static_cast<uint8_t>(random.below(4)), static_cast<uint8_t>(random.below(4)),
        static_cast<uint32_t>(random.next()),  SubflowId(static_cast<uint8_t>(random.next())),
        static_cast<uint32_t>(random.next()),  static_cast<uint8_t>(random.below(4))};
    Bytes bytes(kMinDatagram);
    writeHeader(h, bytes.data());
    EXPECT_TRUE(isSessionDatagram(bytes));
    auto read = readHeader(bytes);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->version, h.version);
    EXPECT_EQ(read->epoch, h.epoch);
    EXPECT_EQ(read->generation, h.generation);
    EXPECT_EQ(read->session, h.session);
    EXPECT_EQ(read->subflow, h.subflow);
    EXPECT_EQ(read->packetNumber, h.packetNumber);
  }
}

TEST(Header, RefusesShortAndForeign) {
  Bytes bytes(kMinDatagram);
  writeHeader({}, bytes.data());
  ASSERT_TRUE(readHeader(bytes));
  EXPECT_FALSE(readHeader(ByteView(bytes).first(kMinDatagram - 1)));
  for (uint8_t first : {uint8_t{0x80}, uint8_t{0x16}, uint8_t{0x00}, uint8_t{0xc0}}) {
    bytes[0] = first;
    EXPECT_FALSE(readHeader(bytes)) << int{first};
  }
}

// RFC 9000 appendix A.3, with 32 bits.
TEST(PacketNumber, ExpandsToTheNearest) {
  EXPECT_EQ(expandNumber(0, 0), 0u);
  EXPECT_EQ(expandNumber(5, 0), 5u);
  EXPECT_EQ(expandNumber(0, 0xffffffffu), 0x100000000u);
  EXPECT_EQ(expandNumber(0xffffffffu, 0x100000000u), 0xffffffffu);
  EXPECT_EQ(expandNumber(0xffffffffu, 0), 0xffffffffu);  // nothing is below zero
}

TEST(PacketNumber, ExpansionInvertsTruncationWithinHalfTheRange) {
  Random random(2);
  for (int i = 0; i < 100000; ++i) {
    uint64_t expected = random.below(uint64_t{1} << 60);
    uint64_t distance = random.below(uint64_t{1} << 31);
    uint64_t pn =
        random.chance(0.5) ? expected + distance : expected - std::min(expected, distance);
    ASSERT_EQ(expandNumber(static_cast<uint32_t>(pn), expected), pn) << expected;
  }
}

}  // namespace
}  // namespace braid::header_test
