#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace braid {

/// Most bytes of a name.
inline constexpr size_t kLongestName = 32;

inline bool isNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-';
}

/// A name of an uplink or a peer: 1 to kLongestName of A-Z a-z 0-9 . _ -, not starting with a dot
/// or dash. It can stand as it is in a log line, a table, a label and a page.
inline bool isName(std::string_view text) {
  return !text.empty() && text.size() <= kLongestName && text.front() != '.' &&
         text.front() != '-' && std::ranges::all_of(text, isNameCharacter);
}

}  // namespace braid
