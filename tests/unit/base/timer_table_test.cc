#include "base/timers.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace braid::timer_table_test {
namespace {

enum class Meal : uint8_t { kBreakfast, kLunch, kDinner, kCount };

const Time kNoon = Time{} + 12h;

TEST(TimerTable, BeginsWithAllTimersStopped) {
  TimerTable<Meal> meals;
  EXPECT_EQ(meals.next(), kNever);
  for (Meal meal : kTimersOf<Meal>) {
    EXPECT_EQ(meals.at(meal), kNever);
    EXPECT_FALSE(meals.isDue(meal, kNoon));
  }
}

TEST(TimerTable, ATimerIsDueFromItsDeadlineOnUntilItIsStopped) {
  TimerTable<Meal> meals;
  meals.set(Meal::kLunch, kNoon);
  EXPECT_FALSE(meals.isDue(Meal::kLunch, kNoon - 1ns));
  EXPECT_TRUE(meals.isDue(Meal::kLunch, kNoon));
  EXPECT_TRUE(meals.isDue(Meal::kLunch, kNoon + 1h));
  EXPECT_FALSE(meals.isDue(Meal::kDinner, kNoon));
  meals.stop(Meal::kLunch);
  EXPECT_FALSE(meals.isDue(Meal::kLunch, kNoon));
}

TEST(TimerTable, SettingATimerAnewReplacesItsDeadline) {
  TimerTable<Meal> meals;
  meals.set(Meal::kLunch, kNoon);
  meals.set(Meal::kLunch, kNoon + 1h);
  EXPECT_FALSE(meals.isDue(Meal::kLunch, kNoon));
  EXPECT_EQ(meals.next(), kNoon + 1h);
}

TEST(TimerTable, TheEarliestDeadlineIsNext) {
  TimerTable<Meal> meals;
  meals.set(Meal::kDinner, kNoon + 7h);
  EXPECT_EQ(meals.next(), kNoon + 7h);
  meals.set(Meal::kBreakfast, kNoon - 5h);
  meals.set(Meal::kLunch, kNoon);
  EXPECT_EQ(meals.next(), kNoon - 5h);
  meals.stop(Meal::kBreakfast);
  EXPECT_EQ(meals.next(), kNoon);
  meals.stopAll();
  EXPECT_EQ(meals.next(), kNever);
}

TEST(TimerTable, NextIsTheMinimumWhateverIsSet) {
  uint64_t seed = 4;
  SCOPED_TRACE(seed);
  Random random(seed);
  TimerTable<Meal> meals;
  for (int i = 0; i < 1000; ++i) {
    Meal meal = kTimersOf<Meal>[random.below(kTimerCount<Meal>)];
    meals.set(meal, random.below(4) == 0 ? kNever : Time{} + Duration(random.below(50)));
    Time least = kNever;
    for (Meal m : kTimersOf<Meal>) least = std::min(least, meals.at(m));
    ASSERT_EQ(meals.next(), least);
  }
}

TEST(TimerTable, TheTimersOfAnEnumComeInItsOrder) {
  EXPECT_EQ(kTimersOf<Meal>, (std::array{Meal::kBreakfast, Meal::kLunch, Meal::kDinner}));
}

}  // namespace
}  // namespace braid::timer_table_test
