#pragma once

// Of many values, a few.

#include <span>
#include <vector>

namespace braid::sim {

/// The p-quantile by nearest rank; 0 of nothing.
double percentile(std::vector<double> values, double p);
/// 0 of nothing.
double mean(std::span<const double> values);
/// Jain's fairness index; 1 of nothing.
double jain(std::span<const double> values);

}  // namespace braid::sim
