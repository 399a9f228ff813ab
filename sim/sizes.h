#pragma once

// Flow sizes from the published distributions in sim/data. The README there names their sources.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"

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

/// The distribution of this name in sim/data ("web_server", "web_search").
Sizes namedSizes(const std::string& name);

}  // namespace braid::sim
