#include "scheduler/path/ecf.h"

#include <algorithm>

#include "scheduler/path/min_rtt.h"

namespace braid {

std::optional<size_t> Ecf::pick(std::span<const PathView> paths, const FlowView& flow,
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

bool Ecf::waitIsSooner(const PathView& fast, const PathView& slow, uint64_t toSend) {
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
