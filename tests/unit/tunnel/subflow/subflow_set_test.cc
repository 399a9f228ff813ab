#include "tunnel/subflow/subflow.h"

#include "tests/unit/tunnel/subflow/subflow_bench.h"

namespace braid::subflow_set_test {
namespace {

using SubflowSetTest = SubflowBench;

TEST_F(SubflowSetTest, NumbersAreThePeersPositionsAreOurs) {
  Subflow& nine = add(9);
  Subflow& two = add(2);
  EXPECT_EQ(subflows.size(), 2u);
  EXPECT_EQ(subflows.find(9_subflow), &nine);
  EXPECT_EQ(subflows.find(2_subflow), &two);
  EXPECT_EQ(subflows.find(3_subflow), nullptr);
  EXPECT_EQ(subflows.find(255_subflow), nullptr) << "above all that there are";
  EXPECT_EQ(subflows.positionOf(9_subflow), 0u);
  EXPECT_EQ(subflows.positionOf(2_subflow), 1u);
  EXPECT_EQ(&subflows[1], &two);
  EXPECT_EQ(std::vector<Subflow*>(subflows.begin(), subflows.end()),
            (std::vector<Subflow*>{&nine, &two}));
}

TEST_F(SubflowSetTest, NamesFindPositions) {
  add(0, "wifi");
  add(1, "lte");
  EXPECT_EQ(subflows.named("lte"), 1u);
  EXPECT_EQ(subflows.named("dsl"), std::nullopt);
}

TEST_F(SubflowSetTest, TheFastestIsAmongThoseThatCarryData) {
  EXPECT_FALSE(subflows.anyUsable());
  EXPECT_EQ(subflows.fastest(), nullptr);
  Subflow& slow = open(0, 80ms);
  Subflow& fast = open(1, 20ms);
  add(2);
  EXPECT_TRUE(subflows.anyUsable());
  EXPECT_EQ(subflows.fastest(), &fast);
  fast.admission().setRole(PathRole::kNone, now);
  EXPECT_EQ(subflows.fastest(), &slow);
  slow.admission().setRole(PathRole::kNone, now);
  EXPECT_EQ(subflows.fastest(), nullptr);
  EXPECT_TRUE(subflows.anyUsable()) << "they rest, and could be used";
}

TEST_F(SubflowSetTest, WhatIsClearedHandsItsDataBack) {
  Subflow& s = open(0);
  send(s, {make()});
  EXPECT_EQ(dataTracker.records(), 1u);
  subflows.clear();
  EXPECT_EQ(subflows.size(), 0u);
  EXPECT_EQ(subflows.find(0_subflow), nullptr);
  EXPECT_EQ(dataTracker.records(), 0u);
}

}  // namespace
}  // namespace braid::subflow_set_test
