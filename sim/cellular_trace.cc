#include "sim/cellular_trace.h"

#include <cmath>
#include <numbers>

#include "base/random.h"

namespace braid::sim {

namespace {
constexpr double kDeviation = 0.4;  // of ln(rate), after a second

/// Box and Muller, 1958.
double normal(Random& random) {
  double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
  return radius * std::cos(2 * std::numbers::pi * random.uniform());
}
}  // namespace

std::vector<RateStep> cellularTrace(uint64_t seed, size_t seconds) {
  Random random(seed);
  double low = std::log(kCellularLow), high = std::log(kCellularHigh);
  double at = low + (high - low) * random.uniform();
  std::vector<RateStep> trace;
  for (size_t i = 0; i < seconds; ++i) {
    trace.push_back({std::chrono::seconds(1), std::exp(at)});
    at += kDeviation * normal(random);
    if (at < low) at = 2 * low - at;
    if (at > high) at = 2 * high - at;
  }
  return trace;
}

}  // namespace braid::sim
