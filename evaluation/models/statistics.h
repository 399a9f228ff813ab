#pragma once

// Summary statistics.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace braid::sim {

/// The p-quantile by nearest rank; 0 for no values.
inline double percentile(std::vector<double> values, double p) {
  if (values.empty()) return 0;
  auto rank = static_cast<size_t>(std::ceil(p * static_cast<double>(values.size())));
  auto at = values.begin() + static_cast<ptrdiff_t>(std::clamp<size_t>(rank, 1, values.size()) - 1);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

/// The arithmetic mean; 0 for no values.
inline double mean(std::span<const double> values) {
  double sum = 0;
  for (double v : values) sum += v;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

/// Jain's fairness index; 1 for no values.
inline double jain(std::span<const double> values) {
  double sum = 0, squares = 0;
  for (double v : values) sum += v, squares += v * v;
  return squares > 0 ? sum * sum / (static_cast<double>(values.size()) * squares) : 1;
}

}  // namespace braid::sim
