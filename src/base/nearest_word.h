#pragma once

#include <span>
#include <string_view>

namespace braid {

/// The word of `known` that was meant by a mistyped `text`: the one with the fewest single-letter
/// edits, at most two and fewer than `text` has letters. Empty when there is none.
std::string_view nearestWord(std::string_view text, std::span<const std::string_view> known);

}  // namespace braid
