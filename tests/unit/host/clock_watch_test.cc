#include "host/clock_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid::clock_watch_test {
namespace {

using testing::HasSubstr;
using testing::Optional;

/// A machine whose clocks a test moves.
struct ClockWatchTest : testing::Test {
  ClockReading now{.monotonic = 1h, .boot = 2h, .wall = 500000h, .took = 1us};

  void run(Duration d) { now.monotonic += d, now.boot += d, now.wall += d; }
  void suspend(Duration d) { now.boot += d, now.wall += d; }
};

TEST_F(ClockWatchTest, ClocksThatRunTogetherSayNothing) {
  ClockWatch watch(true);
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(watch.take(now), std::nullopt);
    run(i * 1s);
  }
}

TEST_F(ClockWatchTest, ASuspensionIsSeenOnceAndNamesItsLength) {
  for (bool isVirtual : {false, true}) {
    ClockWatch watch(isVirtual);
    watch.take(now);
    suspend(ClockWatch::kLeastSuspension - 1ns);
    EXPECT_EQ(watch.take(now), std::nullopt);
    run(1s);
    suspend(ClockWatch::kLeastSuspension);
    EXPECT_THAT(watch.take(now), Optional(HasSubstr("was suspended for 1 s")));
    EXPECT_EQ(watch.take(now), std::nullopt);
    suspend(8h);
    EXPECT_THAT(watch.take(now), Optional(HasSubstr("was suspended for 28800 s")));
  }
}

TEST_F(ClockWatchTest, AClockSetForwardByFarIsASignInAVirtualMachineAlone) {
  for (bool isVirtual : {false, true}) {
    ClockWatch watch(isVirtual);
    watch.take(now);
    now.wall += ClockWatch::kLeastStep - 1ns;
    EXPECT_EQ(watch.take(now), std::nullopt);
    now.wall += ClockWatch::kLeastStep;
    std::optional<std::string> seen = watch.take(now);
    EXPECT_EQ(seen.has_value(), isVirtual);
    if (isVirtual) EXPECT_THAT(seen, Optional(HasSubstr("set forward by 10 s")));
    EXPECT_EQ(watch.take(now), std::nullopt);
  }
}

TEST_F(ClockWatchTest, AClockSetBackIsNoSign) {
  ClockWatch watch(true);
  watch.take(now);
  now.wall -= 1h;
  EXPECT_EQ(watch.take(now), std::nullopt);
  now.wall += 9s;
  EXPECT_EQ(watch.take(now), std::nullopt);
}

// A process that was stopped between two clocks finds them apart, and nothing has happened.
TEST_F(ClockWatchTest, AReadingThatWasInterruptedSaysNothing) {
  ClockWatch watch(true);
  watch.take(now);
  ClockReading torn = now;
  torn.boot += 1h, torn.wall += 2h, torn.took = 2h;
  EXPECT_EQ(watch.take(torn), std::nullopt);
  EXPECT_EQ(watch.take(now), std::nullopt);
  suspend(1s);
  EXPECT_TRUE(watch.take(now).has_value()) << "it is seen at the next reading";
}

}  // namespace
}  // namespace braid::clock_watch_test
