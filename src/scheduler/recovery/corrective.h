#pragma once

#include <algorithm>

#include "scheduler/recovery/recovery.h"

namespace braid {

/// "corrective": TCP Instant Recovery (CoFUSO section 6.2.1, FUSO section VI-A, after Flach et al., "Reducing
/// Web Latency", SIGCOMM 2013). The packets that a path sends within a time bin of RTT/4, at most 16, form a
/// block with one XOR parity, which goes on the same path RTT/4 after the bin closed. RTTs are smoothed ones.
/// A bin begins with the oldest packet that is in no block.
///
/// Departures: the parity waits for a moment without new data, as all protection does, and for room in the
/// window. A full bin closes with its sixteenth packet; when more were sent since, that one's time is not
/// known and the newest packet's stands for it, at most RTT/4 too late. FUSO has bins of RTT/2 instead.
class Corrective final : public RecoveryPolicy {
 public:
  /// Bins and waits per RTT, and packets of a block (CoFUSO section 6.2.1).
  static constexpr int kPerRtt = 4;
  static constexpr size_t kMaxBin = 16;

  explicit Corrective(const RecoveryOptions& options) : maxBin_(std::min(kMaxBin, options.kMax)) {}

  std::optional<Protection> choose(const RecoveryView& view) override;
  Time nextDeadline() const override { return deadline_; }

 private:
  Time binEnd(const RecoveryPath& path) const;

  size_t maxBin_;
  Time deadline_ = kNever;
};

}  // namespace braid
