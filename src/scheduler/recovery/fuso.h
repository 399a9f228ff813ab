#pragma once

#include "base/random.h"
#include "scheduler/recovery/recovery.h"

namespace braid {

/// FUSO (Chen et al., "FUSO: Fast Multi-Path Loss Recovery for Data Center Networks", IEEE/ACM ToN
/// 2018; Algorithm 1, sections III-B and III-B.1). When there is nothing new to send and the paths
/// together have window to spare, a copy of the oldest un-ACKed packet of the worst path is sent on
/// the best path; each packet is copied at most once. The session asks after new data is exhausted
/// and after each ACK, and runs the loop of TRY_SEND_RECOVERIES.
///
/// C_l = alpha * lossrate + beta * lossrate_last, 0 for a path that never lost anything.
/// - Worst path: the largest C_l among the paths with something un-ACKed; when all C_l are 0, the
///   largest measured RTT.
/// - Best path: the smallest C_l among the open paths; among those with 0, the smallest measured
///   RTT. A path that never sent anything comes last; when no open path ever did, one is chosen at
///   random. The best path may be the worst path, too.
///
/// Choices where the paper is silent: a path cannot be the worst when all its un-ACKed packets were
/// copied; among paths with equal C_l other than 0, or with equal RTTs, the first is taken; a path
/// without an RTT comes after those with one, in both searches.
class Fuso final : public RecoveryPolicy {
 public:
  Fuso(const RecoveryOptions& options, uint64_t seed)
      : alpha_(options.alpha), beta_(options.beta), random_(seed) {}

  std::optional<Protection> choose(const RecoveryView& view) override;

 private:
  double alpha_;
  double beta_;
  Random random_;
};

inline std::optional<Protection> Fuso::choose(const RecoveryView& view) {
  if (view.chance != RecoveryChance::kIdle || !hasSpareWindow(view.paths)) return std::nullopt;
  // RTT decides only between paths with a C_l of 0.
  auto rank = [this](const RecoveryPath& path, Duration unknownRtt) {
    const double c = lossMetric(path, alpha_, beta_);
    if (c != 0) return PathRank{c, {}};
    return PathRank{0, path.srtt == Duration{} ? unknownRtt : path.srtt};
  };
  const auto worst = findWorst(
      view.paths, [](const RecoveryPath& path) { return path.uncopied > 0; },
      [&](const RecoveryPath& path) { return rank(path, {}); });
  if (!worst) return std::nullopt;
  const auto best = findBest(
      view.paths, *worst, [&](const RecoveryPath& path) { return rank(path, Duration::max()); },
      random_);
  if (!best) return std::nullopt;
  return Protection{.kind = Protection::Kind::kCopy, .of = *worst, .on = *best};
}

}  // namespace braid
