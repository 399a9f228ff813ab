#pragma once

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
  /// The smallest M, up to `most`, for which the chance that more than M packets are lost is at
  /// most kResidual; 0 when no parity is needed. `expected`: mean number of losses; `burst`: mean
  /// length of their runs. The model: runs come as a Poisson process, and their lengths are
  /// geometric.
  static size_t paritiesFor(double expected, double burst, size_t most);

 private:
  std::optional<size_t> bestPath(const RecoveryView& view, size_t worst) const;

  RecoveryOptions options_;
};

}  // namespace braid
