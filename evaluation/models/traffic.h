#pragma once

// Which flows there are: their sizes, from the published distributions in evaluation/data (the
// README there names their sources), between which hosts they are, and when they begin.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/time.h"

namespace braid::sim {

/// An empirical distribution of flow sizes in bytes, linear between its points.
class Sizes {
 public:
  /// Reads lines of `bytes probability`, both rising, the last probability 1. Lines with one number
  /// are skipped. Throws std::runtime_error when the file cannot be read or is malformed.
  explicit Sizes(const std::string& file);

  /// Draws a size of 1 to `most` bytes. A larger size is drawn again, so the distribution must have
  /// sizes up to `most`.
  uint64_t draw(Random& random, uint64_t most) const;
  /// Mean of draw(), bytes.
  double mean(uint64_t most) const;

 private:
  double quantile(double p) const;
  std::vector<std::pair<double, double>> points_;  // probability, bytes
};

/// The distribution of this name in evaluation/data ("web_server", "web_search").
Sizes namedSizes(const std::string& name);

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

/// A random permutation without a fixed point, for n >= 2: gives each of n hosts another host to
/// send to.
std::vector<size_t> derangement(size_t n, Random& random);

}  // namespace braid::sim
