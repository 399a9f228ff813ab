// Words of records that have white space.

#include "ctl/client/host_record.h"

#include <gtest/gtest.h>

#include <sstream>

namespace braid::host_record_test {
namespace {

using Words = std::vector<std::string>;

TEST(HostRecord, WordsAreReadAsTheyWere) {
  for (const Words& words :
       {Words{}, Words{"/run/braid/edge.sock"}, Words{"", "two words", " ", "end"},
        Words{"tab\tline\nend\r\v\f", "\\040", "\\", "a \"quoted\" one", "caf\xc3\xa9"}}) {
    std::stringstream file;
    writeWords(file, words);
    EXPECT_EQ(readWords(file), words);
  }
}

TEST(HostRecord, WordsWithoutQuotationMarksAreReadToo) {
  std::istringstream file("braid0 255 6000 /run/braid/edge.sock \n");
  EXPECT_EQ(readWords(file), (Words{"braid0", "255", "6000", "/run/braid/edge.sock"}));
}

}  // namespace
}  // namespace braid::host_record_test
