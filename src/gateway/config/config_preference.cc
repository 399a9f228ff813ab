// The keys of an uplink that say how it is to be used: `use`, `metered`, `rate-limit`, `weight`.

#include <algorithm>

#include "gateway/config/config_sections.h"

namespace braid {
namespace {

constexpr std::string_view kUses[] = {"normal", "metered", "backup"};  // in the order of PathUse
constexpr std::string_view kPeriods[] = {"day", "week", "month"};
constexpr std::string_view kWeekdays[] = {"sunday",   "monday", "tuesday", "wednesday",
                                          "thursday", "friday", "saturday"};
/// Bytes. A smaller cap would be little more than the reserve that is kept back (UplinkMeter::reserve()).
constexpr uint64_t kSmallestCap = 10'000'000;
constexpr uint64_t kLargestCap = 1'000'000'000'000'000;
constexpr uint64_t kBits = 8;

template <size_t N>
std::optional<unsigned> readIndex(const ConfigValue& value, const std::string_view (&names)[N],
                                  ConfigDiagnostics& out) {
  std::optional<std::string> name = readChoice(value, names, out);
  if (!name) return std::nullopt;
  return static_cast<unsigned>(std::find(std::begin(names), std::end(names), std::string_view(*name)) -
                               std::begin(names));
}

MeterPeriod readPeriod(const ConfigSection& section, ConfigDiagnostics& out) {
  using Unit = MeterPeriod::Unit;
  MeterPeriod period;
  if (auto unit = readIndex(section.find("period"), kPeriods, out)) period.unit = static_cast<Unit>(*unit);
  assign(period.hour, readNumber(section.find("reset-hour"), 0, 23, out));
  ConfigValue day = section.find("reset-day");
  switch (period.unit) {
    case Unit::kDay:
      if (day) out.add(day, "has no effect with period day", "remove it, or set period: month or week");
      break;
    case Unit::kWeek:
      assign(period.day, readIndex(day, kWeekdays, out));
      break;
    case Unit::kMonth:
      assign(period.day, readNumber(day, 1, 31, out));
      break;
  }
  return period;
}

std::optional<UplinkConfig::Meter> readMeter(const ConfigValue& value, ConfigDiagnostics& out) {
  if (!value) return std::nullopt;
  ConfigSection section(value, {"cap", "period", "reset-day", "reset-hour"}, out);
  UplinkConfig::Meter meter;
  assign(meter.cap, readByteCount(section.require("cap", "add the bytes that a period allows, such as 10GB"),
                                  kSmallestCap, kLargestCap, out));
  meter.period = readPeriod(section, out);
  return meter;
}

void readLimit(const ConfigValue& value, UplinkConfig& uplink, ConfigDiagnostics& out) {
  if (!value) return;
  ConfigSection section(value, {"up", "down"}, out);
  constexpr uint64_t kLow = PathPreference::kMinCeiling * kBits, kHigh = PathPreference::kMaxCeiling * kBits;
  ConfigValue up = section.find("up"), down = section.find("down");
  if (auto rate = readBitRate(up, kLow, kHigh, out)) uplink.preference.ceiling = *rate / kBits;
  if (auto rate = readBitRate(down, kLow, kHigh, out)) uplink.peerCeiling = *rate / kBits;
  if (value.node->kind == ConfigNode::Kind::kMap && !up && !down)
    out.add(value, "limits nothing", "add up, down or both, such as {up: 5Mbit/s, down: 20Mbit/s}");
}

}  // namespace

void readPreference(const ConfigSection& section, UplinkConfig& uplink, ConfigDiagnostics& out) {
  uplink.meter = readMeter(section.find("metered"), out);
  if (uplink.meter) uplink.preference.use = PathUse::kMetered;
  if (auto use = readIndex(section.find("use"), kUses, out))
    uplink.preference.use = static_cast<PathUse>(*use);
  readLimit(section.find("rate-limit"), uplink, out);
  assign(uplink.preference.weight, readNumber(section.find("weight"), 1, PathPreference::kMaxWeight, out));
}

}  // namespace braid
