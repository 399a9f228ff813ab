#pragma once

#include <string>
#include <string_view>

namespace braid {

/// The text with '?' instead of what a terminal would obey (C0, C1), of characters that break a
/// line or change the order of what is shown, and of bytes that are not UTF-8. For texts from
/// outside: of peers, networks, hosts, files.
std::string printable(std::string_view text);

/// As printable(), but the text may have several lines. `indent` is put before each line except the
/// first, so that no text can look like a line of its own.
std::string printableLines(std::string_view text, std::string_view indent = "");

}  // namespace braid
