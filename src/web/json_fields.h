#pragma once

// Members of a daemon's answer, by reference, because answers of concentrators are megabytes long.
// A member that is missing or of another type gives null, 0 or an empty value.

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

namespace braid {

inline const nlohmann::json kNull;

inline const nlohmann::json& memberOf(const nlohmann::json& object, const char* key) {
  if (!object.is_object()) return kNull;
  auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}
/// The items of a list; empty when the member is not a list.
inline const nlohmann::json::array_t& itemsOf(const nlohmann::json& object, const char* key) {
  static const nlohmann::json::array_t kNone;
  const nlohmann::json& list = memberOf(object, key);
  return list.is_array() ? list.get_ref<const nlohmann::json::array_t&>() : kNone;
}
inline std::string wordOf(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = memberOf(object, key);
  if (value.is_string()) return value.get<std::string>();
  return value.is_number_integer() ? value.dump() : "";
}
inline uint64_t wholeOf(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = memberOf(object, key);
  return value.is_number_unsigned() ? value.get<uint64_t>() : 0;
}
inline bool isSet(const nlohmann::json& object, const char* key) {
  return memberOf(object, key) == true;
}

}  // namespace braid
