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

}  // namespace
}  // namespace braid::table_test
