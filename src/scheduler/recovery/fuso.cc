#include "scheduler/recovery/fuso.h"

#include "scheduler/recovery/recovery.h"

namespace braid {

std::optional<Protection> Fuso::choose(const RecoveryView& view) {
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
      view.paths, [&](const RecoveryPath& path) { return rank(path, Duration::max()); }, random_);
  if (!best) return std::nullopt;
  return Protection{.kind = Protection::Kind::kCopy, .of = *worst, .on = *best};
}

}  // namespace braid
