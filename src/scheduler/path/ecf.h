#pragma once

#include "scheduler/path/path_scheduler.h"

namespace braid {

/// ECF, Earliest Completion First (Lim, Nahum, Towsley, Gibbens: "ECF: An MPTCP Path Scheduler to
/// Manage Heterogeneous Paths", CoNEXT 2017, Algorithm 1). When the fastest path is full, ECF
/// compares sending on a slower path with waiting for the fastest one. It waits when all queued
/// data would be delivered sooner that way. Windows and queue are bytes here, packets in the paper;
/// rttvar stands for the paper's standard deviation.
class Ecf final : public PathScheduler {
 public:
  /// Hysteresis (the paper's beta, section 5): once ECF waits, it continues to wait until the slow
  /// path is better by the fraction kBeta.
  static constexpr double kBeta = 0.25;

  std::optional<size_t> pick(std::span<const PathView> paths, const FlowView& flow,
                             FlowPatience& patience, Time now) override;
  bool waiting() const { return waiting_; }

 private:
  bool waitIsSooner(const PathView& fast, const PathView& slow, uint64_t toSend);

  bool waiting_ = false;
};

}  // namespace braid
