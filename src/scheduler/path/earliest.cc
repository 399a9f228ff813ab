#include "scheduler/path/earliest.h"

#include <algorithm>

#include "scheduler/path/min_rtt.h"

namespace braid {

namespace {
/// Shortest time until the scheduler is asked again: timers need not be finer.
constexpr Duration kLeastWait = 100us;
/// ECF Algorithm 1 (beta): a flow that waits continues to wait, so that small errors of the rates
/// do not end the wait at once.
constexpr double kBeta = 0.25;
}  // namespace

std::optional<size_t> Earliest::pick(std::span<const PathView> paths, const FlowView& flow,
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
