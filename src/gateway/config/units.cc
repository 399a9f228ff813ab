#include "gateway/config/units.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <span>

namespace braid {

namespace {

struct Unit {
  std::string_view name;
  uint64_t factor;
};

// Factors to nanoseconds, ascending.
constexpr Unit kTimeUnits[] = {{"ns", 1},
                               {"us", 1'000},
                               {"ms", 1'000'000},
                               {"s", 1'000'000'000},
                               {"min", 60'000'000'000},
                               {"h", 3'600'000'000'000},
                               {"d", 86'400'000'000'000}};
// Factors to bytes. byteCountText() writes the first four, which are in ascending order.
constexpr Unit kByteUnits[] = {{"B", 1},          {"KiB", 1 << 10},     {"MiB", 1 << 20},
                               {"GiB", 1 << 30},  {"kB", 1'000},        {"KB", 1'000},
                               {"MB", 1'000'000}, {"GB", 1'000'000'000}};
constexpr size_t kBinaryUnits = 4;
// Factors to bits per second, ascending.
constexpr Unit kRateUnits[] = {
    {"bit/s", 1}, {"kbit/s", 1'000}, {"Mbit/s", 1'000'000}, {"Gbit/s", 1'000'000'000}};

// A decimal number times its unit; nullopt when the result is not a whole number or exceeds int64.
std::optional<uint64_t> parseScaled(std::string_view text, std::span<const Unit> units) {
  using Wide = unsigned __int128;
  constexpr Wide kMax = std::numeric_limits<int64_t>::max();
  size_t end = text.find_first_not_of("0123456789.");
  if (end == std::string_view::npos) return text == "0" ? std::optional<uint64_t>(0) : std::nullopt;
  Wide digits = 0, divisor = 1;
  bool point = false, anyBefore = false, anyAfter = false;
  for (char c : text.substr(0, end)) {
    if (c == '.') {
      if (point || !anyBefore) return std::nullopt;
      point = true;
      continue;
    }
    (point ? anyAfter : anyBefore) = true;
    digits = digits * 10 + static_cast<unsigned>(c - '0');
    if (point) divisor *= 10;
    if (digits > kMax || divisor > kMax) return std::nullopt;
  }
  if (!anyBefore || (point && !anyAfter)) return std::nullopt;
  std::string_view name = text.substr(end);
  if (name.size() > 1 && name[0] == ' ') name.remove_prefix(1);
  for (const Unit& unit : units) {
    if (unit.name != name) continue;
    Wide scaled = digits * unit.factor;
    if (scaled % divisor != 0 || scaled / divisor > kMax) return std::nullopt;
    return static_cast<uint64_t>(scaled / divisor);
  }
  return std::nullopt;
}

std::string scaledText(uint64_t value, std::span<const Unit> rising) {
  size_t i = rising.size() - 1;
  while (i > 0 && (value == 0 || value % rising[i].factor != 0)) --i;
  return std::to_string(value / rising[i].factor) + std::string(rising[i].name);
}

}  // namespace

std::optional<Duration> parseDuration(std::string_view text) {
  std::optional<uint64_t> ns = parseScaled(text, kTimeUnits);
  if (!ns) return std::nullopt;
  return Duration(static_cast<Duration::rep>(*ns));
}

std::optional<uint64_t> parseByteCount(std::string_view text) {
  return parseScaled(text, kByteUnits);
}

std::optional<uint64_t> parseBitRate(std::string_view text) {
  return parseScaled(text, kRateUnits);
}

std::optional<uint64_t> parseNumber(std::string_view text) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string durationText(Duration d) {
  return d == Duration::zero() ? "0s" : scaledText(static_cast<uint64_t>(d.count()), kTimeUnits);
}

std::string bitRateText(uint64_t bitsPerSecond) {
  return scaledText(bitsPerSecond, kRateUnits);
}

std::string byteCountText(uint64_t bytes) {
  return scaledText(bytes, std::span(kByteUnits).first(kBinaryUnits));
}

namespace {
int daysOf(int year, int month) {
  std::tm last{};
  last.tm_year = year;
  last.tm_mon = month + 1;
  last.tm_mday = 0;  // the day before the first of that month
  last.tm_hour = 12;
  last.tm_isdst = -1;
  std::mktime(&last);
  return last.tm_mday;
}

// The start of the period that is `steps` after the period around `today`.
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
  // The start in this period may be past, the start in the next one is not.
  constexpr int kEnough = 2;
  for (int steps = 0; steps < kEnough; ++steps) {
    std::time_t begin = beginOf(period, today, steps);
    if (begin > now) return begin;
  }
  return beginOf(period, today, kEnough);
}

}  // namespace braid
