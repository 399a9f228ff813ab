#pragma once

#include <algorithm>

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

inline std::optional<size_t> Ecf::pick(std::span<const PathView> paths, const FlowView& flow,
                                       FlowPatience&, Time) {
  std::optional<size_t> slow = lowestRtt(paths);
  if (!slow) return std::nullopt;
  size_t fast = *slow;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (paths[i].usable && paths[i].srtt < paths[fast].srtt) fast = i;
  }
  if (fast == *slow) return slow;
  if (waitIsSooner(paths[fast], paths[*slow], flow.bytes + flow.queued)) return std::nullopt;
  return slow;
}

inline bool Ecf::waitIsSooner(const PathView& fast, const PathView& slow, uint64_t toSend) {
  // n, k, CWND, RTT, sigma and delta are the names of the paper.
  double k = static_cast<double>(toSend);
  double cwndF = static_cast<double>(std::max<uint64_t>(fast.window, 1));
  double cwndS = static_cast<double>(std::max<uint64_t>(slow.window, 1));
  double rttF = toSeconds(fast.srtt);
  double rttS = toSeconds(slow.srtt);
  double delta = toSeconds(std::max(fast.rttvar, slow.rttvar));
  double n = 1 + std::max(1.0, k / cwndF);
  if (n * rttF >= (1 + (waiting_ ? kBeta : 0)) * (rttS + delta)) {
    waiting_ = false;
    return false;
  }
  if (std::max(1.0, k / cwndS) * rttS < 2 * rttF + delta) return false;
  waiting_ = true;
  return true;
}

}  // namespace braid
