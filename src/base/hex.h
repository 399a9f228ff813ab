#pragma once

#include <charconv>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace braid {

/// Two lower-case digits for each byte.
inline std::string toHex(ByteView bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

/// Fills `out` from two digits for each of its bytes, of either case. False: the text is something else; `out` may be
/// half filled then.
inline bool fromHex(std::string_view text, std::span<uint8_t> out) {
  if (text.size() != 2 * out.size()) return false;
  for (uint8_t& byte : out) {
    if (std::from_chars(text.data(), text.data() + 2, byte, 16).ptr != text.data() + 2) return false;
    text.remove_prefix(2);
  }
  return true;
}

}  // namespace braid
