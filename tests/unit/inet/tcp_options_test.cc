#include "inet/tcp.h"

#include <gtest/gtest.h>

#include "tests/unit/inet/packets.h"

namespace braid::tcp_options_test {
namespace {

using test::Bytes;

TEST(SequenceTest, OrderWraps) {
  Seq high{0xfffffff0}, low{0x10};
  EXPECT_TRUE(high < low);
  EXPECT_TRUE(low > high);
  EXPECT_EQ(low - high, 0x20);
  EXPECT_EQ(high - low, -0x20);
  EXPECT_EQ(high + 0x20, low);
  EXPECT_TRUE(high <= high && high >= high && !(high < high));
}

TEST(TcpOptionsTest, ASyn) {
  TcpOptionFields f =
      parseTcpOptions(Bytes{2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0, 1, 3, 3, 7});
  EXPECT_EQ(f.mss, 1460);
  EXPECT_EQ(f.windowShift, 7);
  EXPECT_TRUE(f.sackPermitted);
  EXPECT_EQ(f.timestamps, (TcpTimestamps{9, 0}));
  EXPECT_EQ(f.sackCount, 0);
}

TEST(TcpOptionsTest, NothingIsNothing) {
  TcpOptionFields f = parseTcpOptions({});
  EXPECT_FALSE(f.mss || f.windowShift || f.sackPermitted || f.timestamps || f.sackCount);
}

TEST(TcpOptionsTest, AlignedTimestampsThenSackBlocks) {
  Bytes b{1, 1, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8, 1, 1, 5, 18,
          0, 0, 1, 0,  0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0};
  TcpOptionFields f = parseTcpOptions(b);
  EXPECT_EQ(f.timestamps, (TcpTimestamps{0x01020304, 0x05060708}));
  ASSERT_EQ(f.sackCount, 2);
  EXPECT_EQ(f.sacks[0], (SeqRange{{0x100}, {0x200}}));
  EXPECT_EQ(f.sacks[1], (SeqRange{{0x300}, {0x400}}));
}

TEST(TcpOptionsTest, FourBlocksAtMostAndAShiftOfFourteen) {
  Bytes b{5, 34};
  for (uint8_t i = 1; i <= 8; ++i) test::append(b, {0, 0, 0, i});
  test::append(b, {3, 3, 200});
  TcpOptionFields f = parseTcpOptions(b);
  EXPECT_EQ(f.sackCount, 4);
  EXPECT_EQ(f.sacks[3], (SeqRange{{7}, {8}}));
  EXPECT_EQ(f.windowShift, 14);
}

TEST(TcpOptionsTest, WrongLengthsAreIgnoredAndMalformedOnesEndTheList) {
  EXPECT_FALSE(parseTcpOptions(Bytes{2, 3, 5, 4, 3, 1, 1, 1}).sackPermitted);
  EXPECT_EQ(parseTcpOptions(Bytes{2, 3, 5, 2, 4, 5, 0xb4, 0}).mss, 1460);
  EXPECT_EQ(parseTcpOptions(Bytes{5, 9, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1}).sackCount, 0);
  EXPECT_FALSE(parseTcpOptions(Bytes{7, 1, 4, 2}).sackPermitted);   // length below 2
  EXPECT_FALSE(parseTcpOptions(Bytes{7, 40, 4, 2}).sackPermitted);  // length beyond the end
  EXPECT_FALSE(parseTcpOptions(Bytes{0, 1, 4, 2}).sackPermitted);   // behind the end
  EXPECT_FALSE(parseTcpOptions(Bytes{1, 1, 8, 10, 1, 2, 3}).timestamps);
}

}  // namespace
}  // namespace braid::tcp_options_test
