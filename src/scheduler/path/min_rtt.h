#pragma once

#include "scheduler/path/path_scheduler.h"

namespace braid {

/// The default of MPTCP: picks the open path with the lowest smoothed RTT; the first of equals.
class MinRtt final : public PathScheduler {
 public:
  std::optional<size_t> pick(std::span<const PathView> paths, const FlowView& flow,
                             FlowPatience& patience, Time now) override;
};

/// The path with the lowest smoothed RTT among those for which the field `open` (PathView::open or
/// PathView::ahead) is true; the first of equals.
std::optional<size_t> lowestRtt(std::span<const PathView> paths,
                                bool PathView::*open = &PathView::open);

}  // namespace braid
