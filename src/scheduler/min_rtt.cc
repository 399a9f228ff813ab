#include "scheduler/min_rtt.h"

namespace braid {

std::optional<size_t> MinRtt::pick(std::span<const PathView> paths, uint64_t, uint64_t) {
  return lowestRttOpen(paths);
}

std::optional<size_t> lowestRttOpen(std::span<const PathView> paths) {
  std::optional<size_t> best;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (paths[i].open && (!best || paths[i].srtt < paths[*best].srtt)) best = i;
  }
  return best;
}

}  // namespace braid
