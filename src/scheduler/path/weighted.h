#pragma once

#include <vector>

#include "scheduler/path/path_scheduler.h"

namespace braid {

/// Spreads data over uplinks in proportion to their weights. It picks among the open paths of the
/// uplink that has sent the fewest bytes per unit of weight, and of these the one with the lowest
/// smoothed RTT. All that a path has sent counts. An uplink that could not carry its share makes up
/// for at most kMemory of it.
class Weighted final : public PathScheduler {
 public:
  /// Bytes per unit of weight. More than a datagram, which a path of weight 1 sends at once.
  static constexpr double kMemory = 64 << 10;

  std::optional<size_t> pick(std::span<const PathView> paths, const FlowView& flow,
                             FlowPatience& patience, Time now) override;

 private:
  void account(std::span<const PathView> paths);

  std::vector<uint64_t> sent_;  // by path, as last seen
  std::vector<double> served_;  // by uplink: bytes sent per unit of weight
};

}  // namespace braid
