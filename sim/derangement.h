#pragma once

#include <cstddef>
#include <vector>

#include "base/random.h"

namespace braid::sim {

/// A permutation without a fixed point: to whom each of n hosts sends. n: at least 2.
std::vector<size_t> derangement(size_t n, Random& random);

}  // namespace braid::sim
