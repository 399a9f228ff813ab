#include "base/bytes.h"

#include <gtest/gtest.h>

#include <array>

namespace braid::hex_test {
namespace {

TEST(Hex, IsReadAsItIsWritten) {
  std::array<uint8_t, 4> bytes{0x00, 0x0f, 0xa0, 0xff}, back{};
  EXPECT_EQ(toHex(bytes), "000fa0ff");
  EXPECT_TRUE(fromHex("000FA0ff", back));
  EXPECT_EQ(back, bytes);
}

TEST(Hex, NothingElseIsTaken) {
  std::array<uint8_t, 2> out{};
  for (const char* text :
       {"", "00", "000", "00000", "000000", "00g0", "0x00", "-100", "+100", " 000", "00 0", "000 "})
    EXPECT_FALSE(fromHex(text, out)) << text;
}

}  // namespace
}  // namespace braid::hex_test
