#pragma once

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "scheduler/recovery/recovery.h"

namespace braid {

/// CoFUSO (Liu et al., "Reducing web latency with coding-based fast multi-path loss recovery",
/// Wireless Networks 2020; Algorithm 2, sections 4.2 and 4.4). It is asked at the same times as
/// FUSO, with the same condition on the windows. It answers with parities over the un-ACKed,
/// uncoded packets of the worst path, sent on the best path:
///
///     L = alpha1 * lossrate + beta1 * lossrate_last       of the worst path
///     K = min(M_max / L, N_uc, K_max),  M = K * L         a new block
///
/// The parities of a begun block are sent first, also after new data was sent in between and when
/// nothing else needs protection. When the worst path has no uncoded packets left, FUSO's copies of
/// its oldest packets are sent, coded before or not.
///
/// The worst and the best path have the largest and the smallest alpha2 * L/max(L) + beta2 *
/// RTT/max(RTT). The paper does not say how it normalises. Here the maxima are over the paths that
/// are usable or have something to protect, and a term whose maximum is 0 is 0.
///
/// Choices where the paper is silent:
/// - M_max / L is rounded down and K * L up. L counts as at most 1. With L = 0, K = min(N_uc,
///   K_max) and M = 1, as in the experiment of section 6.1.1.
/// - A packet that was copied is not coded any more. So a path cannot be the worst when all its
///   packets were copied.
/// - A path without an RTT counts as the slowest. Paths that never sent anything are treated as in
///   FUSO. Among equal paths the first is taken.
/// - M_max is that for the RTT of the worst path.
/// - A block of one packet gets a parity like others, although a copy would do the same with a
///   smaller header: Algorithm 2 has no exception.
class CoFuso final : public RecoveryPolicy {
 public:
  CoFuso(const RecoveryOptions& options, uint64_t seed) : options_(options), random_(seed) {}

  std::optional<Protection> choose(const RecoveryView& view) override;

 private:
  /// Tolerance of rounding: without it, 3 / 0.1 would round down to 29 and 100 * 0.07 up to 8.
  static constexpr double kRounding = 1e-9;

  static bool needsProtection(const RecoveryPath& path) { return path.uncopied > 0; }

  /// Estimated loss rate L, 0..1.
  double lossRate(const RecoveryPath& path) const;
  Protection protect(const RecoveryPath& worst) const;

  RecoveryOptions options_;
  Random random_;
};

inline double CoFuso::lossRate(const RecoveryPath& path) const {
  return std::min(lossMetric(path, options_.alpha1, options_.beta1), 1.0);
}

inline std::optional<Protection> CoFuso::choose(const RecoveryView& view) {
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
  const size_t of = view.paritiesLeft > 0 ? view.blockOf : *worst;
  const auto best = findBest(view.paths, of, rank, random_);
  if (!best) return std::nullopt;

  if (view.paritiesLeft > 0) return Protection{.kind = Protection::Kind::kNextParity, .on = *best};
  Protection protection = protect(view.paths[*worst]);
  protection.of = *worst;
  protection.on = *best;
  return protection;
}

inline Protection CoFuso::protect(const RecoveryPath& worst) const {
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
