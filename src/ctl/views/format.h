#pragma once

// Figures as text for people, and members of a daemon's answer. A member that is missing or of
// another type gives null, "-", 0 or an empty list. They are given by reference, because answers of
// concentrators are megabytes long.

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/field.h"
#include "base/printable.h"

namespace braid {

/// A number for people, with three significant digits and a unit.
std::string formatBytes(double bytes);          ///< "812 B", "20.3 MB", as providers count
std::string formatRate(double bytesPerSecond);  ///< "8.00 kbit/s", "93.2 Mbit/s"
std::string formatMilliseconds(double ms);      ///< "0.42 ms", "12.5 ms", "1.20 s"
std::string formatAge(double seconds);          ///< "45 s", "3 min 20 s", "2 h 5 min", "9 d 4 h"
std::string formatShortAge(double seconds);     ///< "45 s", "3 min", "2 h", "9 d"
std::string formatMicroseconds(double us);      ///< "12.5 us", "1.20 ms"; "-" for 0 and NaN
/// Local time of a moment in seconds since 1970: "2026-07-01 00:00".
std::string formatDate(double unixSeconds);
/// Local time of day of a moment in seconds since 1970: "10:02:15".
std::string formatTimeOfDay(double unixSeconds);
/// 0.0125: "1.25 %".
std::string formatFraction(double fraction);
/// 0.99987: "99.98 %", rounded down: only what was always there has "100 %".
std::string formatAvailability(double fraction);
/// "1.25", without a unit.
std::string formatNumber(double v);
/// `part` as a share of `whole`: "0 %", "0.02 %", "12.5 %"; "-" when `whole` is 0.
std::string formatShare(uint64_t part, uint64_t whole);

/// Columns of the terminal for which the output is made.
inline constexpr size_t kColumns = 100;
/// A note or a warning in lines of at most kColumns bytes, broken at spaces. Every line but
/// the first begins with two spaces; each ends with '\n'. A word that is longer, such as a path,
/// makes its line longer.
std::string paragraph(std::string_view text);

/// Text in columns, two spaces apart. A column whose title starts with '>' (not printed) is aligned
/// to the right, for numbers.
class Table {
 public:
  explicit Table(std::vector<std::string> titles);
  /// Adds a row with at most as many cells as there are titles; missing ones are empty.
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  /// The lines with their line ends and without leading blanks. Where they would have more than
  /// `columns`, cells of words are cut, those of the widest column first; a cut cell ends in "~".
  /// Numbers and titles are never cut.
  std::string toString(size_t columns = std::numeric_limits<size_t>::max()) const;

 private:
  std::vector<std::string> titles_;
  std::vector<bool> right_;
  std::vector<std::vector<std::string>> rows_;
};

inline const nlohmann::json& fieldOf(const nlohmann::json& object, const char* key) {
  static const nlohmann::json kNull;
  if (!object.is_object()) return kNull;
  auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}
/// The items of a list; an empty list when the member is not a list.
inline const nlohmann::json::array_t& listOf(const nlohmann::json& object, const char* key) {
  static const nlohmann::json::array_t kNone;
  const nlohmann::json& list = fieldOf(object, key);
  return list.is_array() ? list.get_ref<const nlohmann::json::array_t&>() : kNone;
}
/// `other` when the member is not a number; the format functions show NaN as "-".
inline double numberOf(const nlohmann::json& object, const char* key,
                       double other = std::numeric_limits<double>::quiet_NaN()) {
  const nlohmann::json& value = fieldOf(object, key);
  return value.is_number() ? value.get<double>() : other;
}
inline uint64_t countOf(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = fieldOf(object, key);
  return value.is_number_unsigned() ? value.get<uint64_t>() : 0;
}
/// A text or a whole number as it is; empty when the member is neither.
inline std::string wordOf(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = fieldOf(object, key);
  if (value.is_string()) return value.get<std::string>();
  return value.is_number_integer() ? value.dump() : "";
}
/// A text or a whole number for a terminal.
inline std::string textOf(const nlohmann::json& object, const char* key) {
  std::string word = wordOf(object, key);
  return word.empty() ? "-" : printable(word);
}
inline bool flagOf(const nlohmann::json& object, const char* key) {
  return fieldOf(object, key) == true;
}

/// The output of a verb with --json, in ASCII: what a terminal might obey is escaped, as other
/// characters are. Bytes that are not UTF-8 are replaced.
inline std::string prettyJson(const nlohmann::json& value) {
  return value.dump(2, ' ', true, nlohmann::json::error_handler_t::replace) + "\n";
}

/// Converts addresses, networks, ... to a list of texts.
template <typename List>
nlohmann::json textsOf(const List& list) {
  nlohmann::json out = nlohmann::json::array();
  for (const auto& item : list) out.push_back(item.toString());
  return out;
}

/// The value of the field `info` of an object, in the format of its unit.
std::string figureText(const nlohmann::json& object, const FieldInfo& info);
/// figureText() for a member of a status struct: cell<&SubflowStatus::srtt>(subflow).
template <auto Member>
std::string cell(const nlohmann::json& object) {
  return figureText(object, infoOf<Member>());
}
/// The name of a member in the daemon's answers.
template <auto Member>
inline constexpr const char* kKeyOf = infoOf<Member>().name;

}  // namespace braid
