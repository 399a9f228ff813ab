#pragma once

#include "scheduler/path_scheduler.h"

namespace braid {

/// The default of MPTCP: the open path with the lowest smoothed RTT; the first of equals.
class MinRtt final : public PathScheduler {
 public:
  std::optional<size_t> pick(std::span<const PathView> paths, uint64_t bytes, uint64_t queued) override;
};

/// The open path with the lowest smoothed RTT, for policies that begin with it.
std::optional<size_t> lowestRttOpen(std::span<const PathView> paths);

}  // namespace braid
