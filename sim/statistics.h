#pragma once

// Summary statistics.

#include <span>
#include <vector>

namespace braid::sim {

/// The p-quantile by nearest rank; 0 for no values.
double percentile(std::vector<double> values, double p);
/// The arithmetic mean; 0 for no values.
double mean(std::span<const double> values);
/// Jain's fairness index; 1 for no values.
double jain(std::span<const double> values);

}  // namespace braid::sim
