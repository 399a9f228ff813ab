#include "scheduler/path/path_scheduler.h"

#include <algorithm>

#include "scheduler/path/earliest.h"
#include "scheduler/path/ecf.h"

namespace braid {

std::unique_ptr<PathScheduler> makePathScheduler(std::string_view name) {
  if (name == "earliest") return std::make_unique<Earliest>();
  if (name == "minrtt") return std::make_unique<MinRtt>();
  if (name == "ecf") return std::make_unique<Ecf>();
  if (name == "weighted") return std::make_unique<Weighted>();
  return nullptr;
}

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
