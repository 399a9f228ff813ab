#pragma once

#include <cstddef>
#include <vector>

#include "base/random.h"

namespace braid::sim {

/// A random permutation without a fixed point, for n >= 2: gives each of n hosts another host to
/// send to.
std::vector<size_t> derangement(size_t n, Random& random);

}  // namespace braid::sim
