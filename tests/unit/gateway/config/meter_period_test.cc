#include "gateway/config/units.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <string>

namespace braid::meter_period_test {
namespace {

using Unit = MeterPeriod::Unit;

/// Local times in a zone; "2026-03-29 02:30".
struct MeterPeriodTest : testing::Test {
  std::string before = ::getenv("TZ") ? ::getenv("TZ") : "";
  void zone(const char* tz) {
    ::setenv("TZ", tz, 1);
    ::tzset();
  }
  void SetUp() override { zone("UTC"); }
  void TearDown() override {
    before.empty() ? ::unsetenv("TZ") : ::setenv("TZ", before.c_str(), 1);
    ::tzset();
  }
  static std::time_t at(const char* text) {
    std::tm t{};
    EXPECT_NE(::strptime(text, "%Y-%m-%d %H:%M", &t), nullptr);
    t.tm_isdst = -1;
    return std::mktime(&t);
  }
  static std::string next(const MeterPeriod& period, const char* now) {
    std::time_t begin = nextPeriod(period, at(now));
    std::tm t{};
    ::localtime_r(&begin, &t);
    char text[32];
    std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &t);
    return text;
  }
};

TEST_F(MeterPeriodTest, Months) {
  MeterPeriod first;
  EXPECT_EQ(next(first, "2026-01-15 12:00"), "2026-02-01 00:00");
  EXPECT_EQ(next(first, "2026-12-31 23:59"), "2027-01-01 00:00");
  EXPECT_EQ(next(first, "2026-02-01 00:00"), "2026-03-01 00:00") << "the moment itself has begun";
  MeterPeriod middle{Unit::kMonth, 15, 6};
  EXPECT_EQ(next(middle, "2026-01-15 05:59"), "2026-01-15 06:00");
  EXPECT_EQ(next(middle, "2026-01-15 06:00"), "2026-02-15 06:00");
  EXPECT_EQ(next(middle, "2026-12-20 00:00"), "2027-01-15 06:00");
}

TEST_F(MeterPeriodTest, ShortMonthsBeginOnTheirLastDay) {
  MeterPeriod last{Unit::kMonth, 31, 0};
  EXPECT_EQ(next(last, "2026-01-31 00:00"), "2026-02-28 00:00");
  EXPECT_EQ(next(last, "2026-02-28 00:00"), "2026-03-31 00:00");
  EXPECT_EQ(next(last, "2028-02-10 00:00"), "2028-02-29 00:00");
  EXPECT_EQ(next(last, "2026-04-30 12:00"), "2026-05-31 00:00");
}

TEST_F(MeterPeriodTest, Weeks) {
  MeterPeriod monday{Unit::kWeek, 1, 4};
  EXPECT_EQ(next(monday, "2026-01-04 12:00"), "2026-01-05 04:00") << "a Sunday";
  EXPECT_EQ(next(monday, "2026-01-05 03:59"), "2026-01-05 04:00");
  EXPECT_EQ(next(monday, "2026-01-05 04:00"), "2026-01-12 04:00");
  EXPECT_EQ(next(monday, "2026-01-07 00:00"), "2026-01-12 04:00");
  MeterPeriod saturday{Unit::kWeek, 6, 0};
  EXPECT_EQ(next(saturday, "2026-01-04 12:00"), "2026-01-10 00:00");
}

TEST_F(MeterPeriodTest, Days) {
  MeterPeriod day{Unit::kDay, 1, 5};
  EXPECT_EQ(next(day, "2026-01-31 04:59"), "2026-01-31 05:00");
  EXPECT_EQ(next(day, "2026-01-31 05:00"), "2026-02-01 05:00");
  EXPECT_EQ(next(day, "2026-12-31 23:00"), "2027-01-01 05:00");
}

// Central European time: no 02:30 on 2026-03-29, two of them on 2026-10-25.
TEST_F(MeterPeriodTest, SummerTime) {
  zone("CET-1CEST,M3.5.0,M10.5.0/3");
  MeterPeriod day{Unit::kDay, 1, 2};
  std::time_t gap = nextPeriod(day, at("2026-03-28 12:00"));
  EXPECT_GE(gap, at("2026-03-29 01:00"));
  EXPECT_LE(gap, at("2026-03-29 03:00"));
  EXPECT_GT(nextPeriod(day, gap), gap + 20 * 3600);
  EXPECT_EQ(next(MeterPeriod{}, "2026-10-20 12:00"), "2026-11-01 00:00");
  std::time_t twice = nextPeriod(day, at("2026-10-24 12:00"));
  EXPECT_GT(nextPeriod(day, twice), twice);
}

TEST_F(MeterPeriodTest, AlwaysLiesAhead) {
  zone("CET-1CEST,M3.5.0,M10.5.0/3");
  for (std::time_t now = at("2026-01-01 00:30"); now < at("2027-01-02 00:00"); now += 3600) {
    for (Unit unit : {Unit::kDay, Unit::kWeek, Unit::kMonth}) {
      for (unsigned day : {1u, 6u, 31u}) {
        std::time_t begin = nextPeriod({unit, unit == Unit::kWeek ? day % 7 : day, 2}, now);
        EXPECT_GT(begin, now);
        EXPECT_LE(begin, now + 32 * 86400);
      }
    }
  }
}

}  // namespace
}  // namespace braid::meter_period_test
