#include "scheduler/recovery/cofuso.h"

#include <algorithm>
#include <cmath>

#include "scheduler/recovery/recovery.h"

namespace braid {
namespace {

/// Tolerance of rounding: without it, 3 / 0.1 would round down to 29 and 100 * 0.07 up to 8.
constexpr double kRounding = 1e-9;

bool needsProtection(const RecoveryPath& path) {
  return path.uncopied > 0;
}

}  // namespace

double CoFuso::lossRate(const RecoveryPath& path) const {
  return std::min(lossMetric(path, options_.alpha1, options_.beta1), 1.0);
}

std::optional<Protection> CoFuso::choose(const RecoveryView& view) {
  if (view.chance != RecoveryChance::kIdle || !hasSpareWindow(view.paths)) return std::nullopt;
  double maxLoss = 0;
  Duration maxRtt{};
  for (const RecoveryPath& path : view.paths) {
    if (!path.usable && !needsProtection(path)) continue;
    maxLoss = std::max(maxLoss, lossRate(path));
    maxRtt = std::max(maxRtt, path.srtt);
  }
  auto rank = [&](const RecoveryPath& path) {
    const Duration rtt = path.srtt == Duration{} ? maxRtt : path.srtt;
    const double lossPart = maxLoss > 0 ? lossRate(path) / maxLoss : 0;
    const double rttPart = maxRtt > Duration{} ? toSeconds(rtt) / toSeconds(maxRtt) : 0;
    return PathRank{options_.alpha2 * lossPart + options_.beta2 * rttPart, {}};
  };
  const auto worst = findWorst(view.paths, needsProtection, rank);
  if (!worst && view.paritiesLeft == 0) return std::nullopt;
  const auto best = findBest(view.paths, rank, random_);
  if (!best) return std::nullopt;

  if (view.paritiesLeft > 0) return Protection{.kind = Protection::Kind::kNextParity, .on = *best};
  Protection protection = protect(view.paths[*worst]);
  protection.of = *worst;
  protection.on = *best;
  return protection;
}

Protection CoFuso::protect(const RecoveryPath& worst) const {
  if (worst.uncoded == 0) return {.kind = Protection::Kind::kCopy};
  const double loss = options_.codingRate > 0 ? options_.codingRate : lossRate(worst);
  const size_t most = maxParities(options_, worst.srtt);
  size_t symbols = std::min(worst.uncoded, options_.kMax);
  size_t parities = 1;
  if (loss > 0) {
    const double covered = std::floor(static_cast<double>(most) / loss + kRounding);
    if (covered < static_cast<double>(symbols)) symbols = static_cast<size_t>(covered);
    const double expected = std::ceil(static_cast<double>(symbols) * loss - kRounding);
    parities = std::clamp<size_t>(static_cast<size_t>(expected), 1, most);
  }
  return {.kind = Protection::Kind::kNewBlock, .symbols = symbols, .parities = parities};
}

}  // namespace braid
