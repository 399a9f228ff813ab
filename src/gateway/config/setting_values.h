#pragma once

// Makes the values of the table of settings (settings.cc). `at` gives a member of a section's
// target, as of() makes it.

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <type_traits>
#include <utility>

#include "gateway/config/settings.h"

/// A member of a section's target; BRAID_MEMBER: of the Config.
#define BRAID_OF(type, member) of<type>([](auto& item) -> auto& { return item.member; })
#define BRAID_MEMBER(member) BRAID_OF(Config, member)

namespace braid::setting {

/// The two parts of the table.
std::vector<Setting> hostSettings();
std::vector<Setting> trafficSettings();

/// The most networks of a list.
inline constexpr size_t kMaxNetworks = 1024;

inline constexpr SettingChange kReload = SettingChange::kReload, kRestart = SettingChange::kRestart;

/// A member of a T; `F` gives it, constant or not.
template <typename T, typename F>
struct Member : F {
  using Owner = T;
};
template <typename T, typename F>
Member<T, F> of(F f) {
  return {f};
}
/// The member of the target that is being read.
template <typename At>
auto& in(const SettingTarget& target, At at) {
  return at(*std::get<typename At::Owner*>(target));
}

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
  char text[400];  // the smallest double has 324 digits behind the point
  if constexpr (std::is_floating_point_v<T>)
    return {text, std::to_chars(text, std::end(text), value, std::chars_format::fixed).ptr};
  else
    return {text, std::to_chars(text, std::end(text), value).ptr};
}

/// `read` returns the value, or nullopt when it is absent or wrong; `show` gives its text. Takes
/// the default from a target that nobody has changed.
template <typename At, typename Read, typename Show>
SettingValue made(At at, std::string values, Read read, Show show) {
  const typename At::Owner fresh{};
  SettingValue value{std::move(values), code(std::string(show(at(fresh)))),
                     [=](const ConfigValue& from, const SettingTarget& to, ConfigDiagnostics& out) {
                       assign(in(to, at), read(from, out));
                     }};
  if constexpr (std::is_same_v<typename At::Owner, Config>)
    value.show = [=](const Config& config) { return std::string(show(at(config))); };
  return value;
}

template <typename At>
SettingValue number(At at, uint64_t low, uint64_t high, const char* unit = "") {
  return made(
      at, std::to_string(low) + " to " + std::to_string(high) + unit,
      [=](const ConfigValue& from, ConfigDiagnostics& out) {
        return readNumber(from, low, high, out);
      },
      [](auto value) { return plain(value); });
}

template <typename At>
SettingValue autoOrNumber(At at, uint64_t low, uint64_t high, const char* unit = "") {
  return made(
      at, "`auto`, " + std::to_string(low) + " to " + std::to_string(high) + unit,
      [=](const ConfigValue& from, ConfigDiagnostics& out) {
        return readAutoOrNumber(from, low, high, out);
      },
      [](auto value) { return value ? std::to_string(value) : "auto"; });
}

/// `zero`: the word that stands for 0; nullptr: none.
template <typename At>
SettingValue time(At at, Duration low, Duration high, const char* zero = nullptr) {
  return made(
      at,
      (zero ? code(zero) + ", time, " : "time, ") + durationText(low) + " to " + durationText(high),
      [=](const ConfigValue& from, ConfigDiagnostics& out) {
        return readDuration(from, low, high, out, zero);
      },
      [=](Duration value) {
        return zero && value == Duration::zero() ? zero : durationText(value);
      });
}

template <typename At>
SettingValue bytes(At at, uint64_t low, uint64_t high) {
  return made(
      at, "bytes, " + byteCountText(low) + " to " + byteCountText(high),
      [=](const ConfigValue& from, ConfigDiagnostics& out) {
        return readByteCount(from, low, high, out);
      },
      byteCountText);
}

/// A rate that is written in bits and kept in bytes per second.
template <typename At>
SettingValue rate(At at, uint64_t low, uint64_t high) {
  constexpr uint64_t kBits = 8;
  return made(
      at, "rate, " + bitRateText(low * kBits) + " to " + bitRateText(high * kBits),
      [=](const ConfigValue& from, ConfigDiagnostics& out) {
        std::optional<uint64_t> bits = readBitRate(from, low * kBits, high * kBits, out);
        return bits ? std::optional(*bits / kBits) : std::nullopt;
      },
      [](uint64_t value) { return bitRateText(value * kBits); });
}

template <typename At>
SettingValue fraction(At at) {
  return made(at, "0 to 1", readFraction, plain<double>);
}

/// A name that is kept as it is.
template <typename At>
SettingValue choice(At at, std::span<const std::string_view> names) {
  return made(
      at, codes(names),
      [=](const ConfigValue& from, ConfigDiagnostics& out) { return readChoice(from, names, out); },
      [](const std::string& value) { return value; });
}

/// A name that stands for a value.
template <typename At, typename T, size_t N>
SettingValue oneOf(At at, const Named<T> (&table)[N]) {
  std::vector<std::string_view> names;
  for (const Named<T>& each : table) names.push_back(each.name);
  std::span<const Named<T>> entries = table;
  return made(
      at, codes(names),
      [=](const ConfigValue& from, ConfigDiagnostics& out) -> std::optional<T> {
        std::optional<std::string> name = readChoice(from, names, out);
        if (!name) return std::nullopt;
        return std::optional<T>(std::in_place,
                                std::ranges::find(entries, *name, &Named<T>::name)->value);
      },
      [=](const T& value) {
        auto found = std::ranges::find(entries, value, &Named<T>::value);
        return found == entries.end() ? std::string_view("none") : found->name;
      });
}

inline constexpr Named<bool> kSwitches[] = {{"on", true}, {"off", false}};
template <typename At>
SettingValue onOff(At at) {
  return oneOf(at, kSwitches);
}

/// A value with a reader of its own, `read(value, out)`.
template <typename At, typename Read>
SettingValue by(At at, std::string values, std::string fallback, Read read) {
  SettingValue value{std::move(values), std::move(fallback),
                     [=](const ConfigValue& from, const SettingTarget& to, ConfigDiagnostics& out) {
                       assign(in(to, at), read(from, out));
                     }};
  if constexpr (std::is_same_v<typename At::Owner, Config>)
    value.show = [=](const Config& config) { return at(config); };
  return value;
}

/// A value that becomes several members of T.
template <typename T>
SettingValue into(std::string values, std::string fallback,
                  void (*read)(const ConfigValue&, T&, ConfigDiagnostics&)) {
  return {std::move(values), std::move(fallback),
          [=](const ConfigValue& from, const SettingTarget& to, ConfigDiagnostics& out) {
            if (from) read(from, *std::get<T*>(to), out);
          }};
}

/// A port or a range of ports, as `firstPort` and `lastPort`.
template <typename T>
SettingValue ports(std::string values) {
  return into<T>(std::move(values), "none",
                 [](const ConfigValue& from, T& to, ConfigDiagnostics& out) {
                   if (std::optional<PortRange> range = readPortRange(from, out)) {
                     to.firstPort = range->first;
                     to.lastPort = range->last;
                   }
                 });
}

inline const std::string& textOf(const std::string& value) {
  return value;
}
template <typename T>
std::string textOf(const T& value) {
  return value.toString();
}

/// What a repeated item of a list is.
enum class Repeats : uint8_t { kAllowed, kMistake };

/// A list of single values; `read` reads one of them.
template <typename At, typename Read>
SettingValue listOf(At at, size_t most, const std::string& what, Read read,
                    Repeats repeats = Repeats::kAllowed) {
  return {"up to " + std::to_string(most) + " " + what, "none",
          [=](const ConfigValue& from, const SettingTarget& to, ConfigDiagnostics& out) {
            auto& list = in(to, at);
            for (const ConfigValue& item : readSequence(from, most, out)) {
              auto value = read(item, out);
              if (!value) continue;
              if (repeats == Repeats::kMistake && std::ranges::find(list, *value) != list.end())
                out.add(item, textOf(*value) + " is given twice", "remove one of them");
              list.push_back(*value);
            }
          }};
}

/// A section in a section, with the same target.
inline SettingValue section() {
  return {"section", "", readSection};
}

/// Reads one item of a list or an optional section, and checks it when it has no mistake.
template <typename T>
void readChecked(const ConfigValue& from, T& to,
                 void (*check)(const ConfigValue&, T&, ConfigDiagnostics&),
                 ConfigDiagnostics& out) {
  size_t before = out.size();
  readSection(from, &to, out);
  if (out.size() == before) check(from, to, out);
}

/// A section that is a target of its own; `at` gives a std::optional<T>.
template <typename At, typename T>
SettingValue section(At at, void (*check)(const ConfigValue&, T&, ConfigDiagnostics&)) {
  return {"section", "none",
          [=](const ConfigValue& from, const SettingTarget& to, ConfigDiagnostics& out) {
            if (from) readChecked(from, *(in(to, at) = T{}), check, out);
          }};
}

/// A list of mappings, whose keys are rows of the table; `at` gives a std::vector<T>. It replaces
/// the list that holds without it.
template <typename At, typename T>
SettingValue items(At at, size_t most, void (*check)(const ConfigValue&, T&, ConfigDiagnostics&)) {
  return {"list of up to " + std::to_string(most), "none",
          [=](const ConfigValue& from, const SettingTarget& to, ConfigDiagnostics& out) {
            if (!from) return;
            std::vector<T>& list = in(to, at);
            list.clear();
            for (const ConfigValue& item : readSequence(from, most, out))
              if (item) readChecked(item, list.emplace_back(), check, out);
          }};
}

/// What a check of the section reads, because its meaning depends on another key.
inline SettingValue byCheck(std::string values, std::string fallback) {
  return {std::move(values), std::move(fallback)};
}

}  // namespace braid::setting
