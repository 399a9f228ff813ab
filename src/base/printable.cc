#include "base/printable.h"

#include <algorithm>
#include <cstdint>

namespace braid {

namespace {

// Reads the first character of UTF-8 text that is not empty. Returns its number of bytes; 0: the
// text begins with no valid character. `code`: receives the code point.
size_t readUtf8(std::string_view text, uint32_t& code) {
  const auto first = static_cast<unsigned char>(text[0]);
  const size_t size = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (size == 0 || first > 0xf4 || size > text.size()) return 0;
  code = size == 1 ? first : first & (0x7fu >> size);
  for (size_t i = 1; i < size; ++i) {
    const auto next = static_cast<unsigned char>(text[i]);
    if ((next & 0xc0) != 0x80) return 0;
    code = code << 6 | (next & 0x3f);
  }
  return size;
}

// Whether a terminal obeys the character (C0, C1), breaks the line at it, or shows what follows in
// another order (Unicode's explicit directional characters).
bool isControl(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x061c || code == 0x200e ||
         code == 0x200f || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    uint32_t code = 0;
    const size_t size = readUtf8(text, code);
    if (size == 0 || isControl(code)) {
      out += '?';
    } else {
      out += text.substr(0, size);
    }
    text.remove_prefix(std::max<size_t>(size, 1));
  }
  return out;
}

std::string printableLines(std::string_view text, std::string_view indent) {
  std::string out;
  for (size_t end = 0; end != std::string_view::npos; text.remove_prefix(end + 1)) {
    end = text.find('\n');
    out += printable(text.substr(0, end));
    if (end == std::string_view::npos) break;
    out += '\n';
    out += indent;
  }
  return out;
}

}  // namespace braid
