#pragma once

#include <cstdint>
#include <vector>

#include "simnet/link/link_options.h"

namespace braid::sim {

/// The capacity of a path like a moving phone's 4G, one step a second, between 1 and 50 Mbit/s: the logarithm
/// of the rate makes a random walk with normal steps of deviation 0.4, reflected at both ends; it begins
/// uniformly distributed between them, as it stays. So a second changes the rate by a factor of 1.5 (one
/// deviation), and all orders of magnitude take the same share of time; the mean is 12.5 Mbit/s.
///
/// The steps are those of Sprout's model of cellular links (Winstein, Sivaraman, Balakrishnan, NSDI 2013; its
/// published receiver): a Brownian motion with a deviation of 200 packets/s after a second, in a range up to
/// 1000 packets/s, which is 0.4 of the middle of the range. The range is that of the target; the logs of
/// Ghent's 4G (van der Hooft and others, 2016) show 20 Mbit/s and more for a car, second by second.
std::vector<RateStep> cellularTrace(uint64_t seed, size_t seconds);

inline constexpr double kCellularLow = 1e6;    ///< bit/s
inline constexpr double kCellularHigh = 50e6;  ///< bit/s

}  // namespace braid::sim
