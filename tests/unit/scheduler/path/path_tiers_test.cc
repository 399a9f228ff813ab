#include "scheduler/path/path_tiers.h"

#include <gtest/gtest.h>

namespace braid::path_tiers_test {
namespace {

using enum PathUse;

TEST(PathTiers, OnlyTheBestUseThatIsUsableCarriesData) {
  EXPECT_EQ(roleOf(kNormal, kNormal, false), PathRole::kAll);
  EXPECT_EQ(roleOf(kMetered, kNormal, false), PathRole::kNone);
  EXPECT_EQ(roleOf(kBackup, kNormal, false), PathRole::kNone);
  EXPECT_EQ(roleOf(kMetered, kMetered, false), PathRole::kAll);
  EXPECT_EQ(roleOf(kBackup, kMetered, false), PathRole::kNone) << "metered before backup";
  EXPECT_EQ(roleOf(kBackup, kBackup, false), PathRole::kAll);
}

TEST(PathTiers, SaturationBringsInMeteredOnesOnly) {
  EXPECT_EQ(roleOf(kNormal, kNormal, true), PathRole::kAll);
  EXPECT_EQ(roleOf(kMetered, kNormal, true), PathRole::kOverflow);
  EXPECT_EQ(roleOf(kBackup, kNormal, true), PathRole::kNone);
}

// A path that is not usable now must not have to wait for its role when it returns.
TEST(PathTiers, BetterOnesThanTheBestUsableMayCarryData) {
  EXPECT_EQ(roleOf(kNormal, kBackup, false), PathRole::kAll);
  EXPECT_EQ(roleOf(kMetered, kBackup, false), PathRole::kAll);
}

// ---- overflow hysteresis

constexpr Time kStart = Time{} + 100s;

TEST(OverflowHysteresis, ASecondOfWaitingBringsHelp) {
  OverflowHysteresis s;
  s.onWaiting(kStart);
  EXPECT_EQ(s.nextDeadline(kStart), kStart + 1s);
  s.onTimer(kStart + 999ms);
  EXPECT_FALSE(s.helps());
  s.onTimer(kStart + 1s);
  EXPECT_TRUE(s.helps());
}

TEST(OverflowHysteresis, SecondsBeforeTheFirstWaitDoNotCount) {
  OverflowHysteresis s;
  s.onDrained(kStart);
  s.onWaiting(kStart + 50s);
  s.onTimer(kStart + 50s + 999ms);
  EXPECT_FALSE(s.helps());
}

// Each page waits for 300 ms; this wait decays within 1.2 s.
TEST(OverflowHysteresis, PagesDoNot) {
  OverflowHysteresis s;
  for (int page = 0; page < 100; ++page) {
    Time begin = kStart + page * 1500ms;
    s.onWaiting(begin);
    s.onDrained(begin + 300ms);
    EXPECT_FALSE(s.helps()) << page;
  }
}

// A sender that waits half of the time gains 0.5 - 0.5 / 4 = 0.375 s each second: full in the
// third.
TEST(OverflowHysteresis, WaitingHalfOfTheTimeDoes) {
  OverflowHysteresis s;
  int rounds = 0;
  for (; !s.helps() && rounds < 100; ++rounds) {
    s.onWaiting(kStart + rounds * 100ms);
    s.onDrained(kStart + rounds * 100ms + 50ms);
  }
  EXPECT_EQ(rounds, 27) << "26 rounds of 37.5 ms, and the wait of the next";
}

TEST(OverflowHysteresis, HelpEndsFourSecondsAfterTheLastWait) {
  OverflowHysteresis s;
  s.onWaiting(kStart);
  s.onDrained(kStart + 2s);
  EXPECT_TRUE(s.helps());
  EXPECT_EQ(s.nextDeadline(kStart + 2s), kStart + 6s);
  s.onTimer(kStart + 5999ms);
  EXPECT_TRUE(s.helps());
  s.onTimer(kStart + 6s);
  EXPECT_FALSE(s.helps());
  EXPECT_EQ(s.nextDeadline(kStart + 6s), kNever);
}

TEST(OverflowHysteresis, WhileItHelpsOnlyWhatHasWaitedTenMillisecondsIsUrgent) {
  OverflowHysteresis s;
  s.onWaiting(kStart);
  EXPECT_FALSE(s.isUrgent(kStart + 500ms)) << "no help yet";
  s.onTimer(kStart + 1s);
  EXPECT_TRUE(s.isUrgent(kStart + 1s));
  s.onDrained(kStart + 1100ms);
  EXPECT_FALSE(s.isUrgent(kStart + 1100ms));
  s.onWaiting(kStart + 1200ms);
  EXPECT_EQ(s.nextDeadline(kStart + 1200ms), kStart + 1210ms);
  EXPECT_FALSE(s.isUrgent(kStart + 1209ms));
  s.onWaiting(kStart + 1209ms);
  EXPECT_TRUE(s.isUrgent(kStart + 1210ms)) << "the same wait";
  EXPECT_EQ(s.nextDeadline(kStart + 1210ms), kNever);
}

}  // namespace
}  // namespace braid::path_tiers_test
