#pragma once

#include <vector>

#include "scheduler/path/path_scheduler.h"

namespace braid {

/// Spreads data over uplinks in proportion to their weights: of the open paths one of the uplink that has
/// sent least for its weight, and of those the one with the lowest smoothed RTT. What counts is all that a
/// path has sent. An uplink that could not carry its share makes up for kMemory of it at most. Ours.
class Weighted final : public PathScheduler {
 public:
  /// Bytes for each unit of weight. More than a datagram, which a path of weight 1 sends at once.
  static constexpr double kMemory = 64 << 10;

  std::optional<size_t> pick(std::span<const PathView> paths, const FlowView& flow, FlowPatience& patience,
                             Time now) override;

 private:
  void account(std::span<const PathView> paths);

  std::vector<uint64_t> sent_;  // by path, as last seen
  std::vector<double> served_;  // by uplink: bytes for each unit of weight
};

}  // namespace braid
