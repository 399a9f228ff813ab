#include "base/timers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "base/random.h"

namespace braid::timer_wheel_test {
namespace {

constexpr Time at(Duration d) {
  return Time(d);
}

std::vector<uint32_t> fired(TimerWheel& wheel, Time now) {
  std::vector<uint32_t> ids;
  wheel.advance(now, [&](uint32_t id) { ids.push_back(id); });
  return ids;
}

TEST(TimerWheelTest, FiresInTheFirstTickThatIsNotEarly) {
  TimerWheel wheel(3, 1ms);
  wheel.arm(1, at(10ms));
  wheel.arm(2, at(10ms + 1ns));
  EXPECT_EQ(wheel.nextDeadline(), at(10ms));
  EXPECT_TRUE(fired(wheel, at(10ms - 1ns)).empty());
  EXPECT_EQ(fired(wheel, at(10ms)), std::vector<uint32_t>{1});
  EXPECT_FALSE(wheel.isArmed(1));
  EXPECT_EQ(wheel.nextDeadline(), at(11ms));
  EXPECT_EQ(fired(wheel, at(11ms)), std::vector<uint32_t>{2});
  EXPECT_EQ(wheel.nextDeadline(), kNever);
}

TEST(TimerWheelTest, WhatIsOverdueFiresInTheNextTick) {
  TimerWheel wheel(1, 1ms);
  fired(wheel, at(500ms));
  wheel.arm(0, at(3ms));
  EXPECT_EQ(wheel.nextDeadline(), at(501ms));
  EXPECT_TRUE(fired(wheel, at(500ms)).empty());
  EXPECT_EQ(fired(wheel, at(501ms)).size(), 1u);
}

TEST(TimerWheelTest, ArmingAgainMovesAndCancelRemoves) {
  TimerWheel wheel(2, 1ms);
  wheel.arm(0, at(5ms));
  wheel.arm(0, at(900ms));
  wheel.arm(1, at(7ms));
  EXPECT_EQ(wheel.armed(), 2u);
  EXPECT_EQ(fired(wheel, at(6ms)).size(), 0u);
  wheel.cancel(1);
  wheel.cancel(1);
  EXPECT_EQ(fired(wheel, at(899ms)).size(), 0u);
  EXPECT_EQ(fired(wheel, at(900ms)).size(), 1u);
}

TEST(TimerWheelTest, ArmEarlierNeverPutsOff) {
  TimerWheel wheel(1, 1ms);
  wheel.armEarlier(0, at(50ms));
  wheel.armEarlier(0, at(60ms));
  EXPECT_EQ(wheel.nextDeadline(), at(50ms));
  wheel.armEarlier(0, at(20ms));
  EXPECT_EQ(wheel.nextDeadline(), at(20ms));
}

TEST(TimerWheelTest, BeyondTheHorizonFiresAtTheHorizon) {
  TimerWheel wheel(1, 1ms);
  wheel.arm(0, kNever);
  Time horizon = at(1ms * TimerWheel::kHorizon);
  EXPECT_EQ(fired(wheel, horizon - 1ms).size(), 0u);
  EXPECT_EQ(fired(wheel, horizon).size(), 1u);
}

TEST(TimerWheelTest, ATimerMayBeArmedWhileItFires) {
  TimerWheel wheel(1, 1ms);
  wheel.arm(0, at(1ms));
  int count = 0;
  wheel.advance(at(200ms), [&](uint32_t id) {
    ++count;
    wheel.arm(id, at(64ms * count));
  });
  EXPECT_EQ(count, 4);  // 1, 64, 128 and 192 ms
}

// Compared with a plain table of deadlines: 2,000 steps of arming, cancelling and advancing over
// all levels.
TEST(TimerWheelTest, AgreesWithATable) {
  Random random(7);
  TimerWheel wheel(50, 1ms);
  std::map<uint32_t, Time> table;
  Time now = at(0ms);
  for (int step = 0; step < 2000; ++step) {
    auto id = static_cast<uint32_t>(random.below(50));
    if (random.chance(0.2)) {
      wheel.cancel(id);
      table.erase(id);
    } else {
      Duration ahead =
          1us * static_cast<int64_t>(random.below(uint64_t{1} << (1 + random.below(32))));
      wheel.arm(id, now + ahead);
      table[id] = now + ahead;
    }
    Time before = now;
    now += 1us * static_cast<int64_t>(random.below(1u << random.below(24)));
    wheel.advance(now, [&](uint32_t due) {
      auto found = table.find(due);
      ASSERT_NE(found, table.end());
      ASSERT_LE(found->second, now);
      table.erase(found);
    });
    // A deadline of the tick in which it was armed may wait for the next one.
    for (auto [left, deadline] : table)
      ASSERT_TRUE(deadline > now - 1ms || deadline <= before + 1ms) << left;
    ASSERT_EQ(wheel.armed(), table.size());
    ASSERT_LE(wheel.nextDeadline(), table.empty() ? kNever
                                                  : std::max_element(
                                                        table.begin(), table.end(),
                                                        [](auto& a, auto& b) {
                                                          return a.second < b.second;
                                                        })->second +
                                                        1ms);
  }
}

}  // namespace
}  // namespace braid::timer_wheel_test
