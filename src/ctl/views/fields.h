#pragma once

// Members of a daemon's answer, ready for a table. A member that is missing or of another type
// gives "-", 0 or an empty list.

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "base/field.h"
#include "ctl/views/format.h"

namespace braid {

inline nlohmann::json fieldOf(const nlohmann::json& object, const char* key) {
  auto found = object.is_object() ? object.find(key) : object.end();
  return object.is_object() && found != object.end() ? *found : nlohmann::json();
}
/// The items of a list; an empty list when the member is not a list.
inline nlohmann::json listOf(const nlohmann::json& object, const char* key) {
  nlohmann::json list = fieldOf(object, key);
  return list.is_array() ? list : nlohmann::json::array();
}
/// NaN when the member is not a number; the format functions show it as "-".
inline double numberOf(const nlohmann::json& object, const char* key) {
  nlohmann::json value = fieldOf(object, key);
  return value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
}
inline uint64_t countOf(const nlohmann::json& object, const char* key) {
  nlohmann::json value = fieldOf(object, key);
  return value.is_number_unsigned() ? value.get<uint64_t>() : 0;
}
/// A text or a whole number, as text.
inline std::string textOf(const nlohmann::json& object, const char* key) {
  nlohmann::json value = fieldOf(object, key);
  if (value.is_string() && !value.get_ref<const std::string&>().empty())
    return printable(value.get<std::string>());
  return value.is_number_integer() ? value.dump() : "-";
}
inline bool flagOf(const nlohmann::json& object, const char* key) {
  return fieldOf(object, key) == true;
}

/// The output of a verb with --json. Bytes that are not UTF-8 are replaced.
inline std::string prettyJson(const nlohmann::json& value) {
  return value.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
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
