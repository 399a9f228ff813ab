#include "base/memory.h"

#include <gtest/gtest.h>

#include <set>

namespace braid::stock_test {
namespace {

struct Thing {
  int value = 7;
};

TEST(ObjectPool, AFreshObjectIsAsItsTypeBegins) {
  ObjectPool<Thing> stock;
  EXPECT_EQ(stock.take()->value, 7);
}

TEST(ObjectPool, ObjectsInUseAreDifferentOnes) {
  ObjectPool<Thing, 4> stock;
  std::set<Thing*> seen;
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(seen.insert(stock.take()).second);
  EXPECT_EQ(stock.inUse(), 10u);
}

TEST(ObjectPool, WhatIsGivenBackIsUsedAgainAsItIs) {
  ObjectPool<Thing, 1> stock;
  Thing* thing = stock.take();
  thing->value = 3;
  stock.give(thing);
  EXPECT_EQ(stock.inUse(), 0u);
  EXPECT_EQ(stock.take(), thing);
  EXPECT_EQ(thing->value, 3);
}

TEST(ObjectPool, ItShrinksWhenNothingIsInUse) {
  ObjectPool<Thing, 4> stock;
  EXPECT_EQ(stock.footprint(), 0u);
  Thing* thing = stock.take();
  EXPECT_EQ(stock.footprint(), 4 * sizeof(Thing));
  stock.shrink();
  EXPECT_EQ(stock.footprint(), 4 * sizeof(Thing));
  stock.give(thing);
  stock.shrink();
  EXPECT_EQ(stock.footprint(), 0u);
  EXPECT_EQ(stock.take()->value, 7);
}

TEST(ObjectPool, ObjectsKeepTheirPlaceWhenTheStockGrows) {
  ObjectPool<Thing, 2> stock;
  Thing* first = stock.take();
  first->value = 1;
  for (int i = 0; i < 100; ++i) stock.take();
  EXPECT_EQ(first->value, 1);
}

}  // namespace
}  // namespace braid::stock_test
