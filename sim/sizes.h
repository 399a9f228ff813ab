#pragma once

// Flow sizes from published distributions: sim/data, whose README says where each comes from.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"

namespace braid::sim {

/// An empirical distribution of flow sizes in bytes, linear between its points.
class Sizes {
 public:
  /// Reads lines of `bytes probability`, both rising, the last probability 1; lines with one number are
  /// skipped. Throws std::runtime_error when it cannot.
  explicit Sizes(const std::string& file);

  /// One draw: at least 1, at most `most` (larger ones are drawn again; the file must have smaller ones).
  uint64_t draw(Random& random, uint64_t most) const;
  /// Mean of such draws, bytes.
  double mean(uint64_t most) const;

 private:
  double quantile(double p) const;
  std::vector<std::pair<double, double>> points_;  // probability, bytes
};

/// The distribution of this name in sim/data ("web_server", "web_search").
Sizes namedSizes(const std::string& name);

}  // namespace braid::sim
