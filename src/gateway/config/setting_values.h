#pragma once

// Makes the values of the table of settings (settings.cc). `at` gives the member of a Config.

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "gateway/config/settings.h"

namespace braid::setting {

/// A value with the name that the file has for it.
template <typename T>
struct Named {
  std::string_view name;
  T value;
};

inline std::string code(const std::string& text) {
  return "`" + text + "`";
}

template <typename Names>
std::string codes(const Names& names) {
  std::string out;
  for (std::string_view name : names)
    out += std::string(out.empty() ? "" : ", ") + code(std::string(name));
  return out;
}

/// A number without an exponent or useless digits.
template <typename T>
std::string plain(T value) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
}

/// Takes the default from a Config that nobody has changed.
inline SettingValue made(SettingValue value) {
  value.fallback = code(value.show(Config{}));
  return value;
}

template <typename At>
SettingValue number(At at, uint64_t low, uint64_t high, const char* unit = "") {
  return made({std::to_string(low) + " to " + std::to_string(high) + unit, "",
               [=](const ConfigValue& from, Config& to, ConfigDiagnostics& out) {
                 assign(at(to), readNumber(from, low, high, out));
               },
               [=](const Config& of) { return plain(at(of)); }});
}

template <typename At>
SettingValue autoOrNumber(At at, uint64_t low, uint64_t high, const char* unit = "") {
  return made({"`auto`, " + std::to_string(low) + " to " + std::to_string(high) + unit, "",
               [=](const ConfigValue& from, Config& to, ConfigDiagnostics& out) {
                 assign(at(to), readAutoOrNumber(from, low, high, out));
               },
               [=](const Config& of) { return at(of) ? std::to_string(at(of)) : "auto"; }});
}

using TimeReader = std::optional<Duration> (*)(const ConfigValue&, Duration, Duration,
                                               ConfigDiagnostics&);
/// `zero`: the word that stands for 0; nullptr: none.
template <typename At>
SettingValue timeBy(At at, Duration low, Duration high, TimeReader reader, const char* zero) {
  return made({(zero ? code(zero) + ", time, " : "time, ") + durationText(low) + " to " +
                   durationText(high),
               "",
               [=](const ConfigValue& from, Config& to, ConfigDiagnostics& out) {
                 assign(at(to), reader(from, low, high, out));
               },
               [=](const Config& of) {
                 return zero && at(of) == Duration::zero() ? zero : durationText(at(of));
               }});
}
template <typename At>
SettingValue time(At at, Duration low, Duration high) {
  return timeBy(at, low, high, readDuration, nullptr);
}
template <typename At>
SettingValue autoOrTime(At at, Duration low, Duration high) {
  return timeBy(at, low, high, readAutoOrDuration, "auto");
}
template <typename At>
SettingValue offOrTime(At at, Duration low, Duration high) {
  return timeBy(at, low, high, readOffOrDuration, "off");
}

template <typename At>
SettingValue bytes(At at, uint64_t low, uint64_t high) {
  return made({"bytes, " + byteCountText(low) + " to " + byteCountText(high), "",
               [=](const ConfigValue& from, Config& to, ConfigDiagnostics& out) {
                 assign(at(to), readByteCount(from, low, high, out));
               },
               [=](const Config& of) { return byteCountText(at(of)); }});
}

template <typename At>
SettingValue fraction(At at) {
  return made({"0 to 1", "",
               [=](const ConfigValue& from, Config& to, ConfigDiagnostics& out) {
                 assign(at(to), readFraction(from, out));
               },
               [=](const Config& of) { return plain(at(of)); }});
}

/// A name that is kept as it is.
template <typename At>
SettingValue choice(At at, std::span<const std::string_view> names) {
  return made({codes(names), "",
               [=](const ConfigValue& from, Config& to, ConfigDiagnostics& out) {
                 assign(at(to), readChoice(from, names, out));
               },
               [=](const Config& of) { return at(of); }});
}

/// A name that stands for a value.
template <typename At, typename T, size_t N>
SettingValue oneOf(At at, const Named<T> (&table)[N]) {
  std::vector<std::string_view> names;
  for (const Named<T>& each : table) names.push_back(each.name);
  std::span<const Named<T>> entries = table;
  return made({codes(names), "",
               [=](const ConfigValue& from, Config& to, ConfigDiagnostics& out) {
                 std::optional<std::string> name = readChoice(from, names, out);
                 if (name) at(to) = std::ranges::find(entries, *name, &Named<T>::name)->value;
               },
               [=](const Config& of) {
                 return std::string(std::ranges::find(entries, at(of), &Named<T>::value)->name);
               }});
}

inline constexpr Named<bool> kSwitches[] = {{"on", true}, {"off", false}};
template <typename At>
SettingValue onOff(At at) {
  return oneOf(at, kSwitches);
}

/// A text that the section's code reads, because it has rules of its own.
template <typename At>
SettingValue text(At at, std::string values, std::string fallback) {
  return {std::move(values), std::move(fallback), {}, [=](const Config& of) { return at(of); }};
}

/// What is not a single value, or belongs to an item of a list: the section's code reads it.
inline SettingValue byCode(std::string values, std::string fallback) {
  return {std::move(values), std::move(fallback), {}, {}};
}

}  // namespace braid::setting
