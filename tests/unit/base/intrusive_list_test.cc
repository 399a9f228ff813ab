#include "base/containers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <vector>

#include "base/random.h"

namespace braid::intrusive_list_test {
namespace {

struct Item {
  int value = 0;
  ListLink<Item> link = {};
  ListLink<Item> other = {};
};
using List = IntrusiveList<Item, &Item::link>;
using Values = std::vector<int>;

/// The elements from front to back; also checks the backward links.
Values valuesOf(const List& list) {
  Values values;
  const Item* before = nullptr;
  for (const Item* i = list.front(); i; before = i, i = List::next(*i)) {
    EXPECT_EQ(List::previous(*i), before);
    values.push_back(i->value);
  }
  EXPECT_EQ(list.back(), before);
  return values;
}

TEST(IntrusiveList, AnEmptyListHasNoEnds) {
  List list;
  EXPECT_TRUE(list.empty());
  EXPECT_EQ(list.front(), nullptr);
  EXPECT_EQ(list.back(), nullptr);
}

TEST(IntrusiveList, ObjectsGoInAtTheEndsAndBehindOneAnother) {
  List list;
  Item a{1}, b{2}, c{3}, d{4}, e{5};
  list.pushBack(b);
  list.pushBack(d);
  list.pushFront(a);
  list.insertAfter(b, c);
  list.insertAfter(d, e);
  EXPECT_EQ(valuesOf(list), (Values{1, 2, 3, 4, 5}));
}

TEST(IntrusiveList, ObjectsLeaveFromAnywhere) {
  List list;
  Item a{1}, b{2}, c{3}, d{4};
  for (Item* i : {&a, &b, &c, &d}) list.pushBack(*i);
  list.erase(b);
  EXPECT_EQ(valuesOf(list), (Values{1, 3, 4}));
  list.erase(d);
  EXPECT_EQ(valuesOf(list), (Values{1, 3}));
  EXPECT_EQ(list.popFront(), &a);
  EXPECT_EQ(list.popFront(), &c);
  EXPECT_TRUE(list.empty());
  list.pushBack(b);
  EXPECT_EQ(valuesOf(list), (Values{2})) << "who left may come again";
}

TEST(IntrusiveList, AnObjectIsInTwoListsAtOnce) {
  List list;
  IntrusiveList<Item, &Item::other> others;
  Item a{1}, b{2};
  for (Item* i : {&a, &b}) list.pushBack(*i);
  for (Item* i : {&b, &a}) others.pushBack(*i);
  list.erase(a);
  EXPECT_EQ(others.front(), &b);
  EXPECT_EQ(others.back(), &a);
  EXPECT_EQ(valuesOf(list), (Values{2}));
}

TEST(IntrusiveList, BehavesAsAList) {
  uint64_t seed = 5;
  SCOPED_TRACE(seed);
  Random random(seed);
  std::vector<Item> items(20);
  for (size_t i = 0; i < items.size(); ++i) items[i].value = static_cast<int>(i);
  List list;
  std::list<int> model;
  for (int step = 0; step < 10000; ++step) {
    Item& item = items[random.below(items.size())];
    auto at = std::find(model.begin(), model.end(), item.value);
    if (at != model.end()) {
      list.erase(item);
      model.erase(at);
    } else if (uint64_t where = random.below(3); where == 0) {
      list.pushFront(item);
      model.push_front(item.value);
    } else if (where == 1 || model.empty()) {
      list.pushBack(item);
      model.push_back(item.value);
    } else {
      int position = model.front();
      list.insertAfter(items[static_cast<size_t>(position)], item);
      model.insert(std::next(model.begin()), item.value);
    }
    ASSERT_EQ(valuesOf(list), Values(model.begin(), model.end())) << "step " << step;
  }
}

}  // namespace
}  // namespace braid::intrusive_list_test
