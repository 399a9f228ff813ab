#include "ctl/views/format.h"

#include <gtest/gtest.h>

namespace braid::table_test {
namespace {

TEST(Table, AlignsWordsLeftAndNumbersRight) {
  Table table({"NAME", ">RTT", "STATE"});
  EXPECT_TRUE(table.empty());
  table.add({"wifi", "9.50 ms", "active"});
  table.add(
      {"m\xc3\xb6"
       "bil",
       "120 ms", ""});
  table.add({"x"});
  EXPECT_EQ(table.toString(),
            "NAME       RTT  STATE\n"
            "wifi   9.50 ms  active\n"
            "m\xc3\xb6"
            "bil   120 ms\n"
            "x\n");
}

TEST(Table, CellsStayOnTheirLine) {
  Table table({"A"});
  table.add({"x\ny\x1b"});
  EXPECT_EQ(table.toString(), "A\nx?y?\n");
}

TEST(Table, WordsAreCutWhereItWouldBeTooWide) {
  Table table({"NAME", ">RTT", "ADDRESS"});
  table.add(
      {"m\xc3\xb6"
       "bilfunk",
       "120 ms", "2001:db8::1"});
  table.add({"x", "9.50 ms", "::1"});
  const std::string whole = table.toString();
  EXPECT_EQ(table.toString(31), whole) << "9 + 2 + 7 + 2 + 11 columns";
  EXPECT_EQ(table.toString(29),
            "NAME           RTT  ADDRESS\n"
            "m\xc3\xb6"
            "bilfunk   120 ms  2001:db8~\n"
            "x          9.50 ms  ::1\n")
      << "the widest first";
  EXPECT_EQ(table.toString(1),
            "NAME      RTT  ADDRESS\n"
            "m\xc3\xb6"
            "b~   120 ms  2001:d~\n"
            "x     9.50 ms  ::1\n")
      << "numbers and titles stay";
}

}  // namespace
}  // namespace braid::table_test
