#include "scheduler/path/path_tiers.h"

#include <gtest/gtest.h>

namespace braid::path_tiers_test {
namespace {

using enum PathUse;

TEST(PathTiers, OnlyTheBestUseThatIsUsableCarriesData) {
  EXPECT_EQ(dutyOf(kNormal, kNormal, false), PathDuty::kAll);
  EXPECT_EQ(dutyOf(kMetered, kNormal, false), PathDuty::kNone);
  EXPECT_EQ(dutyOf(kBackup, kNormal, false), PathDuty::kNone);
  EXPECT_EQ(dutyOf(kMetered, kMetered, false), PathDuty::kAll);
  EXPECT_EQ(dutyOf(kBackup, kMetered, false), PathDuty::kNone) << "metered before backup";
  EXPECT_EQ(dutyOf(kBackup, kBackup, false), PathDuty::kAll);
}

TEST(PathTiers, SaturationBringsInMeteredOnesOnly) {
  EXPECT_EQ(dutyOf(kNormal, kNormal, true), PathDuty::kAll);
  EXPECT_EQ(dutyOf(kMetered, kNormal, true), PathDuty::kOverflow);
  EXPECT_EQ(dutyOf(kBackup, kNormal, true), PathDuty::kNone);
}

// One that is not usable now must not have to wait for its duty when it comes back.
TEST(PathTiers, BetterOnesThanTheBestUsableMayCarryData) {
  EXPECT_EQ(dutyOf(kNormal, kBackup, false), PathDuty::kAll);
  EXPECT_EQ(dutyOf(kMetered, kBackup, false), PathDuty::kAll);
}

// ---- saturation

constexpr Time kStart = Time{} + 100s;

TEST(Saturation, ASecondOfWaitingBringsHelp) {
  Saturation s;
  s.onWaiting(kStart);
  EXPECT_EQ(s.nextDeadline(kStart), kStart + 1s);
  s.onTimer(kStart + 999ms);
  EXPECT_FALSE(s.helps());
  s.onTimer(kStart + 1s);
  EXPECT_TRUE(s.helps());
}

TEST(Saturation, SecondsBeforeTheFirstWaitDoNotCount) {
  Saturation s;
  s.onDrained(kStart);
  s.onWaiting(kStart + 50s);
  s.onTimer(kStart + 50s + 999ms);
  EXPECT_FALSE(s.helps());
}

// Each page waits for 300 ms, which take 1.2 s to be forgotten.
TEST(Saturation, PagesDoNot) {
  Saturation s;
  for (int page = 0; page < 100; ++page) {
    Time begin = kStart + page * 1500ms;
    s.onWaiting(begin);
    s.onDrained(begin + 300ms);
    EXPECT_FALSE(s.helps()) << page;
  }
}

// A sender that waits half of the time gains 0.5 - 0.5 / 4 = 0.375 s each second: full in the third.
TEST(Saturation, WaitingHalfOfTheTimeDoes) {
  Saturation s;
  int rounds = 0;
  for (; !s.helps() && rounds < 100; ++rounds) {
    s.onWaiting(kStart + rounds * 100ms);
    s.onDrained(kStart + rounds * 100ms + 50ms);
  }
  EXPECT_EQ(rounds, 27) << "26 rounds of 37.5 ms, and the wait of the next";
}

TEST(Saturation, HelpEndsFourSecondsAfterTheLastWait) {
  Saturation s;
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

TEST(Saturation, WhileItHelpsOnlyWhatHasWaitedTenMillisecondsIsUrgent) {
  Saturation s;
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
