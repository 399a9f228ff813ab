#pragma once

#include "scheduler/recovery/recovery.h"

namespace braid {

/// Braid's own policy: FUSO's two promises and CoFUSO's parities, with three differences.
///   - A block holds the un-ACKed packets of all paths, because which path is the worst is a guess, above all
///     for a flow without history (CoFUSO section 6.1.1 finds 30 % of random losses by that guess).
///   - M is the least for which the chance that a block stays incomplete is below kResidual, from each path's
///     recent loss rate, doubt about it, and burst length. A block that is next to certain to arrive gets
///     nothing, and no copies follow where the parities suffice.
///   - Protection waits for the end of a flow's burst: FIN, PSH, or a pause. A stream that goes on is
///     repaired by what follows it.
/// The policy takes the turn of a short flow that has sent its last packet, and repairs on the path that is
/// likely to deliver first.
class Adaptive final : public RecoveryPolicy {
 public:
  /// Wanted chance that a block can not be completed from its parities. A tenth of a 99th percentile.
  static constexpr double kResidual = 0.001;
  /// What is assumed of a path before its packets tell: a loss rate, and the weight in packets of that
  /// assumption. Radio links lose one to five per cent.
  static constexpr double kPriorLoss = 0.05;
  static constexpr double kPriorPackets = 20;
  /// Standard deviations of that estimate to add to it.
  static constexpr double kDoubt = 1;
  /// A burst ends when nothing was sent for this part of the smoothed RTT, but not sooner than kLeastPause: a host that
  /// hands a stream over in its turns makes such gaps, which say nothing of the stream.
  static constexpr int kPausePerRtt = 8;
  static constexpr Duration kLeastPause = 100us;

  explicit Adaptive(const RecoveryOptions& options) : options_(options) {}

  Time notBefore(const RecoveryView& view) const override;
  std::optional<Protection> choose(const RecoveryView& view) override;
  RepairPlace repairPlace() const override { return RepairPlace::kBestPath; }
  bool takesTurns() const override { return true; }

  /// Loss rate to reckon with: the recent one, drawn towards the prior as long as it rests on few packets.
  static double lossRate(const RecoveryPath& path);
  /// The least M, up to `most`, for which more than M of the packets are lost with a chance of kResidual at
  /// most; 0 when none is needed. `expected`: mean number of losses; `burst`: mean length of their runs.
  /// Runs come as a Poisson process, their lengths are geometric.
  static size_t paritiesFor(double expected, double burst, size_t most);

 private:
  std::optional<size_t> bestPath(const RecoveryView& view, size_t worst) const;

  RecoveryOptions options_;
};

}  // namespace braid
