// How much of a silent path's flight may be sent again elsewhere on doubt alone.

#include "tunnel/subflow/doubt_budget.h"

#include <gtest/gtest.h>

namespace braid::doubt_budget_test {
namespace {

TEST(DoubtBudget, APathThatStumblesNowAndThenHasAllOfIt) {
  DoubtBudget doubt;
  EXPECT_EQ(doubt.take(10), DoubtBudget::kMost) << "its first time";
  uint64_t sent = 10 + DoubtBudget::kMost * DoubtBudget::kShare;
  EXPECT_EQ(doubt.take(sent), DoubtBudget::kMost);
  EXPECT_EQ(doubt.take(2 * sent), DoubtBudget::kMost) << "and never more";
}

TEST(DoubtBudget, OneThatJittersAlwaysHasAShare) {
  DoubtBudget doubt;
  size_t all = doubt.take(1000);
  for (uint64_t sent = 1200; sent <= 201'000; sent += 200) all += doubt.take(sent);
  EXPECT_LE(all, DoubtBudget::kMost + 200'000 / DoubtBudget::kShare);
  EXPECT_GE(all, DoubtBudget::kMost + 200'000 / DoubtBudget::kShare * 9 / 10);
}

}  // namespace
}  // namespace braid::doubt_budget_test
