#pragma once

#include <cstdint>
#include <vector>

#include "simnet/link/link_options.h"

namespace braid::sim {

/// A rate trace like the 4G link of a moving phone: one step per second, between 1 and 50 Mbit/s.
/// The logarithm of the rate is a random walk with normally distributed steps of deviation 0.4,
/// reflected at both ends. Its start is uniformly distributed between the ends, and so are all
/// later values. So the rate changes by a factor of 1.5 per second (one deviation), all orders of
/// magnitude take the same share of time, and the mean is 12.5 Mbit/s.
///
/// The size of the steps is that of Sprout's model of cellular links (Winstein, Sivaraman,
/// Balakrishnan, NSDI 2013; its published receiver): a Brownian motion with a deviation of 200
/// packets/s after a second, in a range up to 1000 packets/s, which is 0.4 of the middle of the
/// range. The range is the one that the target in docs/evaluation.md names. The 4G logs from Ghent
/// (van der Hooft and others, 2016) show 20 Mbit/s and more for a car, with one value per second.
std::vector<RateStep> cellularTrace(uint64_t seed, size_t seconds);

inline constexpr double kCellularLow = 1e6;    ///< bit/s
inline constexpr double kCellularHigh = 50e6;  ///< bit/s

}  // namespace braid::sim
