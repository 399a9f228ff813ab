#include "web/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <cctype>

namespace braid {

namespace {

constexpr int kGzip = 15 + 16;  // the largest window, and a gzip header
constexpr int kLevel = 1;       // the fastest: JSON and text are so repetitive that it is enough
constexpr int kMemory = 8;      // zlib's default

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool isWord(std::string_view text, std::string_view word) {
  return std::equal(text.begin(), text.end(), word.begin(), word.end(),
                    [](unsigned char a, unsigned char b) { return std::tolower(a) == b; });
}

// "q=0", "q=0.0", ...: this encoding is refused.
bool isRefused(std::string_view weight) {
  size_t equals = weight.find('=');
  if (equals == std::string_view::npos || !isWord(trimmed(weight.substr(0, equals)), "q"))
    return false;
  std::string_view value = trimmed(weight.substr(equals + 1));
  return !value.empty() && value.find_first_not_of("0.") == std::string_view::npos;
}

}  // namespace

bool takesGzip(std::string_view list) {
  while (!list.empty()) {
    std::string_view item = list.substr(0, list.find(','));
    list.remove_prefix(std::min(list.size(), item.size() + 1));
    size_t semicolon = item.find(';');
    if (!isWord(trimmed(item.substr(0, semicolon)), "gzip")) continue;
    return semicolon == std::string_view::npos || !isRefused(item.substr(semicolon + 1));
  }
  return false;
}

std::optional<std::string> gzipOf(std::string_view text) {
  z_stream stream{};
  if (deflateInit2(&stream, kLevel, Z_DEFLATED, kGzip, kMemory, Z_DEFAULT_STRATEGY) != Z_OK)
    return std::nullopt;
  std::string out(deflateBound(&stream, text.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const bool isWhole = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  if (!isWhole) return std::nullopt;
  return out;
}

}  // namespace braid
