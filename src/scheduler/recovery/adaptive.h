#pragma once

#include <algorithm>
#include <cmath>

#include "scheduler/recovery/recovery.h"

namespace braid {

/// Braid's own policy. It keeps FUSO's two promises (recovery.h) and sends CoFUSO's parities, with
/// three differences:
/// - A block is over the un-ACKed packets of all paths, because which path is the worst is a guess,
///   above all for a flow without history (CoFUSO section 6.1.1 finds 30 % of random losses by that
///   guess).
/// - M is the smallest number of parities for which the chance that a block stays incomplete is
///   below kResidual. It is computed from each path's recent loss rate, the doubt about that rate,
///   and the burst length. A block that is almost certain to arrive gets no parity, and no copies
///   are sent where the parities suffice.
/// - Protection waits for the end of a flow's burst: FIN, PSH, or a pause. A stream that continues
///   is repaired by what follows it.
///
/// A loss by congestion does not count as the path's loss rate. While all paths lose packets by
/// congestion, nothing is protected: more packets would only fill the queue (RFC 9265,
/// scheduler/rate/congestion_signs.h).
///
/// The policy uses the DRR turn of a short flow that has sent its last packet. It resends lost data
/// on the path that is likely to deliver first.
class Adaptive final : public RecoveryPolicy {
 public:
  /// Accepted probability that a block cannot be completed from its parities: a tenth of the 1 %
  /// that a 99th percentile leaves out.
  static constexpr double kResidual = 0.001;
  /// Assumption about a path before its own packets show it: a loss rate, and the weight of the
  /// assumption in packets. Radio links lose one to five per cent.
  static constexpr double kPriorLoss = 0.05;
  static constexpr double kPriorPackets = 20;
  /// Number of standard deviations of the estimated loss rate that are added to it.
  static constexpr double kDoubt = 1;
  /// A burst ends when nothing was sent for 1/kPausePerRtt of the smoothed RTT, and for at least
  /// kLeastPause. Shorter gaps arise when a host hands over a stream piece by piece, and say
  /// nothing about the stream.
  static constexpr int kPausePerRtt = 8;
  static constexpr Duration kLeastPause = 100us;

  explicit Adaptive(const RecoveryOptions& options) : options_(options) {}

  Time notBefore(const RecoveryView& view) const override;
  std::optional<Protection> choose(const RecoveryView& view) override;
  RepairPlace repairPlace() const override { return RepairPlace::kBestPath; }
  bool takesTurns() const override { return true; }

  /// Loss rate to assume: the recent rate, drawn towards kPriorLoss as long as it rests on few
  /// packets, plus kDoubt standard deviations.
  static double lossRate(const RecoveryPath& path);
  /// The loss rate against which packets on the path are protected: lossRate(), or on a congested
  /// path only what it lost for other causes.
  static double protectedRate(const RecoveryPath& path) {
    return path.congested ? path.recentRate : lossRate(path);
  }
  /// The smallest M, up to `most`, for which the chance that more than M packets are lost is at
  /// most kResidual; 0 when no parity is needed. `expected`: mean number of losses; `burst`: mean
  /// length of their runs. The model: runs come as a Poisson process, and their lengths are
  /// geometric.
  static size_t paritiesFor(double expected, double burst, size_t most);

 private:
  std::optional<size_t> bestPath(const RecoveryView& view, size_t worst) const;

  RecoveryOptions options_;
};

inline double Adaptive::lossRate(const RecoveryPath& path) {
  double packets = path.recentPackets + kPriorPackets;
  double rate = (path.recentRate * path.recentPackets + kPriorLoss * kPriorPackets) / packets;
  return rate + kDoubt * std::sqrt(rate * (1 - rate) / packets);
}

// Sums up the Polya-Aeppli distribution of the number of losses, by its recursion.
inline size_t Adaptive::paritiesFor(double expected, double burst, size_t most) {
  double runs = expected / burst;
  double again = 1 - 1 / burst;
  double before = 0;
  double here = std::exp(-runs);
  double missing = 1 - here;
  size_t m = 0;
  while (missing > kResidual && m < most) {
    ++m;
    auto n = static_cast<double>(m);
    double next =
        ((runs * (1 - again) + 2 * again * (n - 1)) * here - again * again * (n - 2) * before) / n;
    before = here;
    here = next;
    missing -= next;
  }
  return m;
}

// The time at which a pause will have ended the burst; now, if the burst is known to have ended.
inline Time Adaptive::notBefore(const RecoveryView& view) const {
  Time pause = view.now;
  if (view.ended || view.paritiesLeft > 0) return pause;
  for (const RecoveryPath& path : view.paths)
    pause =
        std::max(pause, path.lastSent + std::max<Duration>(path.srtt / kPausePerRtt, kLeastPause));
  return pause;
}

inline std::optional<Protection> Adaptive::choose(const RecoveryView& view) {
  auto isCongested = [](const RecoveryPath& path) { return path.congested || !path.usable; };
  if (std::all_of(view.paths.begin(), view.paths.end(), isCongested)) return std::nullopt;
  double expected = 0;
  double bursts = 0;
  size_t symbols = 0;
  size_t worst = SIZE_MAX;
  double worstLosses = -1;
  Duration slowest{};
  for (size_t i = 0; i < view.paths.size(); ++i) {
    const RecoveryPath& path = view.paths[i];
    if (path.uncoded == 0) continue;
    double losses = static_cast<double>(path.uncoded) * protectedRate(path);
    symbols += path.uncoded;
    expected += losses;
    bursts += losses * path.burst;
    slowest = std::max(slowest, path.srtt);
    if (losses > worstLosses) worst = i, worstLosses = losses;
  }
  if (view.paritiesLeft == 0 && symbols == 0) return std::nullopt;
  std::optional<size_t> best = bestPath(view, worst);
  if (!best) return std::nullopt;
  if (view.paritiesLeft > 0) return Protection{.kind = Protection::Kind::kNextParity, .on = *best};

  if (!(expected > 0)) return std::nullopt;
  double burst = bursts / expected;
  size_t of = Protection::kAllPaths;
  size_t k = symbols;
  if (symbols > options_.kMax) {  // too many for one block: path by path, the worst first
    of = worst;
    k = std::min(view.paths[worst].uncoded, options_.kMax);
    expected = static_cast<double>(k) * protectedRate(view.paths[worst]);
    burst = view.paths[worst].burst;
  }
  RecoveryOptions bounds = options_;
  bounds.mMax = bounds.decodeTime.size();
  size_t most = std::min(maxParities(bounds, slowest), k);
  size_t m = paritiesFor(expected, burst, most);
  if (m == 0) return std::nullopt;
  // Parities are lost, too: send as many more as the best path is likely to lose.
  m = std::min(most, m + static_cast<size_t>(
                             std::lround(static_cast<double>(m) * lossRate(view.paths[*best]))));
  if (k == 1)
    return Protection{.kind = Protection::Kind::kCopy, .of = worst, .on = *best, .uncoded = true};
  return Protection{
      .kind = Protection::Kind::kNewBlock, .of = of, .on = *best, .symbols = k, .parities = m};
}

// The path, of those that may carry it, on which protection is likely to arrive first. The expected
// delay is half a round trip, plus two round trips of the slowest path for what is lost. On the
// worst path itself the loss rate is taken as at least that within a burst of losses, because
// protection would follow the burst that it is meant to repair.
inline std::optional<size_t> Adaptive::bestPath(const RecoveryView& view, size_t worst) const {
  Duration slowest{};
  for (const RecoveryPath& path : view.paths) slowest = std::max(slowest, path.srtt);
  const ProtectingPaths allowed(view.paths, view.paritiesLeft > 0 ? view.blockOf : worst);
  std::optional<size_t> best;
  double bestDelay = 0;
  for (size_t i = 0; i < view.paths.size(); ++i) {
    const RecoveryPath& path = view.paths[i];
    if (!allowed.has(i)) continue;
    double loss = lossRate(path);
    if (i == worst && path.burst > 1) loss = std::max(loss, 1 - 1 / path.burst);
    double delay = toSeconds(path.srtt) / 2 + 2 * loss * toSeconds(slowest);
    if (!best || delay < bestDelay) best = i, bestDelay = delay;
  }
  return best;
}

}  // namespace braid
