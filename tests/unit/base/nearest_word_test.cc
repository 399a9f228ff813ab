#include "base/nearest_word.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace braid::nearest_word_test {
namespace {

TEST(NearestWord, IsTheOneWithTheFewestEdits) {
  const std::vector<std::string_view> known{"state", "status", "streams", "on"};
  EXPECT_EQ(nearestWord("stats", known), "state") << "the first of two that are as near";
  EXPECT_EQ(nearestWord("statuss", known), "status") << "not 'state', which comes first";
  EXPECT_EQ(nearestWord("strems", known), "streams");
}

TEST(NearestWord, NothingIsNearToAnotherWord) {
  const std::vector<std::string_view> known{"status", "on"};
  EXPECT_EQ(nearestWord("dance", known), "");
  EXPECT_EQ(nearestWord("xy", known), "") << "two edits make any two letters of any other two";
  EXPECT_EQ(nearestWord("", known), "");
  EXPECT_EQ(nearestWord(std::string(100'000, 's'), known), "");
}

}  // namespace
}  // namespace braid::nearest_word_test
