#include "host/linux/web_answer.h"

#include <strings.h>

#include <charconv>

namespace braid {

namespace {

constexpr size_t kMostLocation = 512;  // a longer one is left out

std::string_view withoutBlanks(std::string_view text) {
  size_t first = text.find_first_not_of(" \t\r"), last = text.find_last_not_of(" \t\r");
  return first == std::string_view::npos ? "" : text.substr(first, last - first + 1);
}

bool isName(std::string_view text, std::string_view name) {
  return text.size() == name.size() && ::strncasecmp(text.data(), name.data(), name.size()) == 0;
}

}  // namespace

WebAnswer readWebAnswer(std::string_view text) {
  WebAnswer out;
  constexpr std::string_view kBegin = "HTTP/1.";
  if (!text.starts_with(kBegin) || text.size() < kBegin.size() + 6) return out;
  std::string_view code = text.substr(kBegin.size() + 2, 3);
  unsigned status = 0;
  if (std::from_chars(code.data(), code.data() + 3, status).ptr != code.data() + 3 || status < 100)
    return out;
  out.status = status;
  size_t at = text.find('\n'), end = 0;
  // A line without an end may be a part of one.
  for (; at != std::string_view::npos; at = end) {
    end = text.find('\n', at + 1);
    if (end == std::string_view::npos) break;
    std::string_view line = text.substr(at + 1, end - at - 1);
    if (withoutBlanks(line).empty()) break;
    size_t colon = line.find(':');
    if (colon == std::string_view::npos || !isName(line.substr(0, colon), "location")) continue;
    std::string_view value = withoutBlanks(line.substr(colon + 1));
    bool isPlain = value.size() <= kMostLocation;
    for (char c : value) isPlain &= c > ' ' && c < 0x7f;
    if (isPlain) out.location = value;
    break;
  }
  return out;
}

// Lines may end with a line feed alone (RFC 9112 section 2.2).
bool hasWholeHead(std::string_view text) {
  return text.find("\n\r\n") != std::string_view::npos ||
         text.find("\n\n") != std::string_view::npos;
}

}  // namespace braid
