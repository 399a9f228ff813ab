// Words of records that have white space.

#include "ctl/client/host_record.h"

#include <gtest/gtest.h>

namespace braid::host_record_test {
namespace {

TEST(HostRecord, AWordHasNoWhiteSpaceInTheFileAndIsReadAsItWas) {
  EXPECT_EQ(escapedWord("/run/braid/edge.sock"), "/run/braid/edge.sock");
  EXPECT_EQ(escapedWord("/run/my braid\\e.sock"), "/run/my\\040braid\\134e.sock");
  for (const char* word :
       {"a", "two words", " ", "tab\tline\nend\r\v\f", "\\040", "\\", "caf\xc3\xa9"}) {
    EXPECT_EQ(escapedWord(word).find_first_of(" \t\n\v\f\r"), std::string::npos) << word;
    EXPECT_EQ(unescapedWord(escapedWord(word)), word);
  }
}

TEST(HostRecord, WhatIsNoEscapeStaysAsItIs) {
  for (const char* text : {"\\", "\\04", "\\9zz", "\\777", "a\\xyz"})
    EXPECT_EQ(unescapedWord(text), text);
}

}  // namespace
}  // namespace braid::host_record_test
