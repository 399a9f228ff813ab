#include "base/memory.h"

#include <gtest/gtest.h>

#include <set>

namespace braid::object_pool_test {
namespace {

struct Thing {
  int value = 7;
};

TEST(ObjectPool, AFreshObjectIsAsItsTypeBegins) {
  ObjectPool<Thing> pool;
  EXPECT_EQ(pool.take()->value, 7);
}

TEST(ObjectPool, ObjectsInUseAreDifferentOnes) {
  ObjectPool<Thing, 4> pool;
  std::set<Thing*> seen;
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(seen.insert(pool.take()).second);
  EXPECT_EQ(pool.inUse(), 10u);
}

TEST(ObjectPool, WhatIsGivenBackIsUsedAgainAsItIs) {
  ObjectPool<Thing, 1> pool;
  Thing* thing = pool.take();
  thing->value = 3;
  pool.give(thing);
  EXPECT_EQ(pool.inUse(), 0u);
  EXPECT_EQ(pool.take(), thing);
  EXPECT_EQ(thing->value, 3);
}

TEST(ObjectPool, ItShrinksWhenNothingIsInUse) {
  ObjectPool<Thing, 4> pool;
  EXPECT_EQ(pool.footprint(), 0u);
  Thing* thing = pool.take();
  EXPECT_EQ(pool.footprint(), 4 * sizeof(Thing));
  pool.shrink();
  EXPECT_EQ(pool.footprint(), 4 * sizeof(Thing));
  pool.give(thing);
  pool.shrink();
  EXPECT_EQ(pool.footprint(), 0u);
  EXPECT_EQ(pool.take()->value, 7);
}

TEST(ObjectPool, ObjectsKeepTheirPlaceWhenThePoolGrows) {
  ObjectPool<Thing, 2> pool;
  Thing* first = pool.take();
  first->value = 1;
  for (int i = 0; i < 100; ++i) pool.take();
  EXPECT_EQ(first->value, 1);
}

}  // namespace
}  // namespace braid::object_pool_test
