#pragma once

// What the policies after FUSO share: when there is room for protection, and how to find the worst and the
// best path (paper FUSO, Algorithm 1 and section III-B.1).

#include <compare>
#include <optional>
#include <span>

#include "base/random.h"
#include "scheduler/recovery/recovery.h"

namespace braid {

/// Where a path stands: a metric, and an RTT that decides between equals. Smaller is better.
struct PathRank {
  double metric = 0;
  Duration rtt{};
  auto operator<=>(const PathRank&) const = default;
};

/// Algorithm 1: BytesInFlight_Total < CWND_Total, over the usable paths.
inline bool hasSpareWindow(std::span<const RecoveryPath> paths) {
  uint64_t inFlight = 0;
  uint64_t window = 0;
  for (const RecoveryPath& path : paths) {
    if (!path.usable) continue;
    inFlight += path.inFlight;
    window += path.window;
  }
  return inFlight < window;
}

/// FIND_WORST_SUB-FLOW: the path with the largest `rank(path)` among those that `eligible(path)`; the first
/// of equals. A path that is not usable may well be the worst.
template <typename Eligible, typename Rank>
std::optional<size_t> findWorst(std::span<const RecoveryPath> paths, Eligible eligible, Rank rank) {
  std::optional<size_t> worst;
  PathRank worstRank;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (!eligible(paths[i])) continue;
    const PathRank candidate = rank(paths[i]);
    if (worst && !(candidate > worstRank)) continue;
    worst = i;
    worstRank = candidate;
  }
  return worst;
}

/// FIND_BEST_SUB-FLOW: the open path with the smallest `rank(path)`, the first of equals. Paths that never
/// sent anything count as infinitely bad; when all open ones are such, one at random.
template <typename Rank>
std::optional<size_t> findBest(std::span<const RecoveryPath> paths, Rank rank, Random& random) {
  std::optional<size_t> best;
  PathRank bestRank;
  std::optional<size_t> unused;
  uint64_t unusedCount = 0;
  for (size_t i = 0; i < paths.size(); ++i) {
    if (!paths[i].open) continue;
    if (paths[i].sent == 0) {
      ++unusedCount;
      if (!best && random.below(unusedCount) == 0) unused = i;  // each with the same chance
      continue;
    }
    const PathRank candidate = rank(paths[i]);
    if (best && !(candidate < bestRank)) continue;
    best = i;
    bestRank = candidate;
  }
  return best ? best : unused;
}

}  // namespace braid
