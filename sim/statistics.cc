#include "sim/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace braid::sim {

double percentile(std::vector<double> values, double p) {
  if (values.empty()) return 0;
  auto rank = static_cast<size_t>(std::ceil(p * static_cast<double>(values.size())));
  auto at = values.begin() + static_cast<ptrdiff_t>(std::clamp<size_t>(rank, 1, values.size()) - 1);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

double mean(std::span<const double> values) {
  double sum = 0;
  for (double v : values) sum += v;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double jain(std::span<const double> values) {
  double sum = 0, squares = 0;
  for (double v : values) sum += v, squares += v * v;
  return squares > 0 ? sum * sum / (static_cast<double>(values.size()) * squares) : 1;
}

}  // namespace braid::sim
