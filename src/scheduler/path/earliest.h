#pragma once

#include <algorithm>

#include "scheduler/path/path_scheduler.h"

namespace braid {

/// Completes each inner flow as early as possible. A packet is sent on the open path on which it
/// arrives first. It waits instead if the faster paths, which are closed now, would deliver all
/// that the flow has queued before that packet would arrive. While it waits, the open path may be
/// offered to other flows.
///
/// The rule is the comparison of ECF (Lim, Nahum, Towsley, Gibbens, CoNEXT 2017, Algorithm 1: wait
/// when (1 + k/CWND_f) RTT_f is less than RTT_s + delta) with the quantity of BLEST (Ferlin, Alay,
/// Mehani, Boreli, IFIP Networking 2016): what the faster paths send in the time that the slower
/// one takes. Both papers look at a connection. Here it is the inner flow, because the peer puts
/// each inner flow in order separately.
///
/// Waiting is bounded by the time that the slower path takes longer, plus a quarter of its delay
/// (ECF's beta). A flow that has waited that long and still has packets queued has more to send
/// than is queued. It counts as bulk, and takes every open path until it pauses. So waiting never
/// costs a burst more than that time.
class Earliest final : public PathScheduler {
 public:
  std::optional<size_t> pick(std::span<const PathView> paths, const FlowView& flow,
                             FlowPatience& patience, Time now) override;

 private:
  /// Shortest time until the scheduler is asked again: timers need not be finer.
  static constexpr Duration kLeastWait = 100us;
  /// ECF Algorithm 1 (beta): a flow that waits continues to wait, so that small errors of the rates
  /// do not end the wait at once.
  static constexpr double kBeta = 0.25;
};

inline std::optional<size_t> Earliest::pick(std::span<const PathView> paths, const FlowView& flow,
                                            FlowPatience& patience, Time now) {
  patience.until = kNever;
  std::optional<size_t> best = lowestRtt(paths, flow.small ? &PathView::ahead : &PathView::open);
  if (!best || patience.bulk) return best;
  Duration waited = patience.since == kNever ? Duration{} : now - patience.since;
  // `bytes`: what the faster paths deliver before a datagram sent now on the best open path
  // arrives.
  Duration takes = paths[*best].srtt / 2;
  Duration deadline =
      (waited > Duration{} ? fromSeconds((1 + kBeta) * toSeconds(takes)) : takes) - waited;
  Duration shortest = takes;
  double bytes = 0;
  double rate = 0;
  for (const PathView& path : paths) {
    if (!path.usable || path.srtt >= paths[*best].srtt) continue;
    shortest = std::min<Duration>(shortest, path.srtt / 2);
    Duration left = deadline - path.wait - path.srtt / 2;
    if (left <= Duration{}) continue;
    bytes += path.rate * toSeconds(left);
    rate += path.rate;
  }
  double spare = bytes - static_cast<double>(flow.drain);
  if (spare < 0) {
    if (shortest < takes && patience.since != kNever) {
      patience.bulk |= now - patience.first >= takes - shortest;
      patience.since = kNever;
    }
    return best;
  }
  if (patience.since == kNever) patience.since = now;
  if (patience.first == kNever) patience.first = now;
  patience.until = now + std::max(fromSeconds(spare / rate), kLeastWait);
  return std::nullopt;
}

}  // namespace braid
