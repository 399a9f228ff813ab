#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace braid {

/// Keeps the `most` rows for which `busy` returns the largest numbers, in their old order. Of rows
/// with equal numbers, the first are kept.
template <typename Row, typename Busy>
void keepBusiest(std::vector<Row>& rows, size_t most, Busy busy) {
  if (rows.size() <= most) return;
  std::vector<std::pair<double, size_t>> order;
  for (size_t i = 0; i < rows.size(); ++i) order.emplace_back(-busy(rows[i]), i);
  std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(most), order.end());
  order.resize(most);
  std::sort(order.begin(), order.end(),
            [](const auto& a, const auto& b) { return a.second < b.second; });
  std::vector<Row> kept;
  for (const auto& [negative, place] : order) kept.push_back(std::move(rows[place]));
  rows = std::move(kept);
}

}  // namespace braid
