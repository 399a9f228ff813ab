#include "base/nearest_word.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace braid {
namespace {

constexpr size_t kLongest = 40;
constexpr size_t kMostEdits = 2;

// Number of single-letter edits between two short words.
size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i);
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t change = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = std::exchange(row[j], std::min({change, row[j] + 1, row[j - 1] + 1}));
    }
  }
  return row.back();
}

}  // namespace

std::string_view nearestWord(std::string_view text, std::span<const std::string_view> known) {
  if (text.size() > kLongest) return {};
  size_t fewest = std::min(kMostEdits + 1, text.size());
  std::string_view nearest;
  for (std::string_view word : known) {
    size_t edits = editDistance(text, word);
    if (edits < fewest) fewest = edits, nearest = word;
  }
  return nearest;
}

}  // namespace braid
