// How much of a silent path's flight may be sent again elsewhere on doubt alone.

#include "tunnel/subflow/doubt_budget.h"

#include <gtest/gtest.h>

namespace braid::doubt_budget_test {
namespace {

/// Spends all that is left.
size_t take(DoubtBudget& doubt, uint64_t sent) {
  size_t left = doubt.left(sent);
  doubt.spend(left);
  return left;
}

TEST(DoubtBudget, APathThatStumblesNowAndThenHasAllOfIt) {
  DoubtBudget doubt;
  EXPECT_EQ(take(doubt, 10), DoubtBudget::kMost) << "its first time";
  uint64_t sent = 10 + DoubtBudget::kMost * DoubtBudget::kShare;
  EXPECT_EQ(take(doubt, sent), DoubtBudget::kMost);
  EXPECT_EQ(take(doubt, 2 * sent), DoubtBudget::kMost) << "and never more";
}

TEST(DoubtBudget, OneThatJittersAlwaysHasAShare) {
  DoubtBudget doubt;
  size_t all = take(doubt, 1000);
  for (uint64_t sent = 1200; sent <= 201'000; sent += 200) all += take(doubt, sent);
  EXPECT_LE(all, DoubtBudget::kMost + 201'000 / DoubtBudget::kShare);
  EXPECT_GE(all, DoubtBudget::kMost + 200'000 / DoubtBudget::kShare * 9 / 10);
}

// Found by review: the lost packets of an idle path, one at a time, used it up before the path died under load.
TEST(DoubtBudget, WhatIsNotSpentStays) {
  DoubtBudget doubt;
  for (uint64_t sent = 1; sent <= 5; ++sent) {
    EXPECT_EQ(doubt.left(sent), DoubtBudget::kMost + 1 - sent);
    doubt.spend(1);
  }
  EXPECT_EQ(doubt.left(100), DoubtBudget::kMost - 5 + 100 / DoubtBudget::kShare);
  EXPECT_EQ(doubt.left(127), DoubtBudget::kMost - 5 + 1) << "each packet counts once";
  EXPECT_EQ(doubt.left(128), DoubtBudget::kMost - 5 + 2);
}

}  // namespace
}  // namespace braid::doubt_budget_test
