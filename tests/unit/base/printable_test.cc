#include "base/printable.h"

#include <gtest/gtest.h>

namespace braid::printable_test {
namespace {

TEST(Printable, WhatATerminalWouldObeyIsReplaced) {
  EXPECT_EQ(printable("Müller's WLAN, 東京 🚐"), "Müller's WLAN, 東京 🚐");
  EXPECT_EQ(printable("a\033[2Jb\tc\x7f"), "a?[2Jb?c?");
  EXPECT_EQ(printable("a\u009b2Jb"), "a?2Jb") << "C1: the control sequence introducer";
  EXPECT_EQ(printable("a\x9b"
                      "2Jb"),
            "a?2Jb")
      << "the same in eight bits";
  EXPECT_EQ(printable("gnp\u202elte\u202c\u2066x\u2069\u200f"), "gnp?lte??x??");
  EXPECT_EQ(printable("a\u2028b\u061c"), "a?b?");
  EXPECT_EQ(printable("\xc3"), "?") << "cut off";
  EXPECT_EQ(printable("\xc0\x8a|\xff"), "??|?") << "a line feed in two bytes";
}

TEST(Printable, LinesStayLinesAndNoneLooksLikeAnother) {
  EXPECT_EQ(printableLines(""), "");
  EXPECT_EQ(printableLines("a\nb\n"), "a\nb\n");
  EXPECT_EQ(printableLines("a\n<3>b\r\n\nc", "  "), "a\n  <3>b?\n  \n  c");
}

}  // namespace
}  // namespace braid::printable_test
