#pragma once

// Requests between the hosts of a network, and when they begin.

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "base/time.h"
#include "sim/sizes.h"

namespace braid::sim {

/// A request of `client` and the server's response of `bytes` bytes.
struct HostFlow {
  size_t client = 0, server = 0;
  uint64_t bytes = 0;
  Time begin{};  ///< counted from Time{} as the start until an experiment adds its own start
  Time end = kNever;
};

/// Poisson arrivals of the flows of all hosts together.
struct Arrivals {
  size_t hosts = 2;
  Duration gap{};           ///< mean time between two flows of all hosts
  Duration until{};         ///< flows begin before that
  uint64_t most = 1 << 30;  ///< largest flow, bytes
};

/// The Arrivals::gap with which `hosts` hosts each send at `load` times `rate` (bit/s).
Duration gapOf(const Sizes& sizes, uint64_t most, double load, size_t hosts, double rate);

/// Flows between random pairs of hosts, ordered by their begin. The first begins at once.
std::vector<HostFlow> flowsOfRandomPairs(Random& random, const Sizes& sizes,
                                         const Arrivals& arrivals);

/// A random host other than `host`.
size_t otherHost(Random& random, size_t host, size_t hosts);

}  // namespace braid::sim
