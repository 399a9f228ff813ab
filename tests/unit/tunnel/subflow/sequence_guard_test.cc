#include "tunnel/subflow/subflow_state.h"

#include <gtest/gtest.h>

namespace braid::sequence_guard_test {
namespace {

TEST(SequenceGuard, ALaterWordIsNewsAndAnEarlierOneIsNot) {
  SequenceGuard word;
  EXPECT_TRUE(word.isNews(0));
  EXPECT_FALSE(word.isNews(0)) << "said again";
  EXPECT_TRUE(word.isNews(5)) << "those between may be lost, or belong to other matters";
  EXPECT_FALSE(word.isNews(4));
  EXPECT_TRUE(word.isNews(6));
}

}  // namespace
}  // namespace braid::sequence_guard_test
