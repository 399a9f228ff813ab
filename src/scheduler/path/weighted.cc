#include "scheduler/path/weighted.h"

#include <algorithm>

namespace braid {

void Weighted::account(std::span<const PathView> paths) {
  if (sent_.size() < paths.size()) sent_.resize(paths.size());
  double most = 0;
  for (size_t i = 0; i < paths.size(); ++i) {
    const PathView& path = paths[i];
    if (served_.size() <= path.uplink) served_.resize(path.uplink + 1u);
    double& served = served_[path.uplink];
    served += static_cast<double>(path.sent - sent_[i]) / path.weight;
    sent_[i] = path.sent;
    if (path.usable) most = std::max(most, served);
  }
  for (const PathView& path : paths) {
    double& served = served_[path.uplink];
    served = std::max(served, most - kMemory);
  }
}

std::optional<size_t> Weighted::pick(std::span<const PathView> paths, const FlowView&,
                                     FlowPatience&, Time) {
  account(paths);
  std::optional<size_t> best;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (!paths[i].open) continue;
    double own = served_[paths[i].uplink];
    double least = best ? served_[paths[*best].uplink] : own;
    if (!best || own < least || (own == least && paths[i].srtt < paths[*best].srtt)) best = i;
  }
  return best;
}

}  // namespace braid
