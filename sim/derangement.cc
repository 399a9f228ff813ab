#include "sim/derangement.h"

#include <numeric>
#include <utility>

namespace braid::sim {

std::vector<size_t> derangement(size_t n, Random& random) {
  std::vector<size_t> to(n);
  std::iota(to.begin(), to.end(), size_t{0});
  // Sattolo's algorithm: a random permutation that is one cycle.
  for (size_t i = n; i-- > 1;) std::swap(to[i], to[random.below(i)]);
  return to;
}

}  // namespace braid::sim
