#include "scheduler/path/min_rtt.h"

namespace braid {

std::optional<size_t> MinRtt::pick(std::span<const PathView> paths, const FlowView&, FlowPatience&,
                                   Time) {
  return lowestRtt(paths);
}

std::optional<size_t> lowestRtt(std::span<const PathView> paths, bool PathView::*open) {
  std::optional<size_t> best;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (paths[i].*open && (!best || paths[i].srtt < paths[*best].srtt)) best = i;
  }
  return best;
}

}  // namespace braid
