#include "gateway/config/meter_period.h"

#include <algorithm>

namespace braid {

namespace {
int daysOf(int year, int month) {
  std::tm last{};
  last.tm_year = year;
  last.tm_mon = month + 1;
  last.tm_mday = 0;  // the day before the first
  last.tm_hour = 12;
  last.tm_isdst = -1;
  std::mktime(&last);
  return last.tm_mday;
}

// The begin of the period that is `steps` after the one around `today`.
std::time_t beginOf(const MeterPeriod& period, const std::tm& today, int steps) {
  std::tm begin{};
  begin.tm_year = today.tm_year;
  begin.tm_mon = today.tm_mon;
  begin.tm_mday = today.tm_mday;
  begin.tm_hour = static_cast<int>(period.hour);
  begin.tm_isdst = -1;
  int day = static_cast<int>(period.day);
  switch (period.unit) {
    case MeterPeriod::Unit::kDay:
      begin.tm_mday += steps;
      break;
    case MeterPeriod::Unit::kWeek:
      begin.tm_mday += day - today.tm_wday + 7 * steps;
      break;
    case MeterPeriod::Unit::kMonth:
      begin.tm_mon += steps;
      begin.tm_mday = std::min(day, daysOf(begin.tm_year, begin.tm_mon));
      break;
  }
  return std::mktime(&begin);
}
}  // namespace

std::time_t nextPeriod(const MeterPeriod& period, std::time_t now) {
  std::tm today{};
  ::localtime_r(&now, &today);
  constexpr int kEnough = 2;  // this week's day may be past, and so may next week's never be
  for (int steps = 0; steps < kEnough; ++steps) {
    std::time_t begin = beginOf(period, today, steps);
    if (begin > now) return begin;
  }
  return beginOf(period, today, kEnough);
}

}  // namespace braid
