#pragma once

#include <vector>

#include "scheduler/recovery/recovery.h"

namespace braid {

/// "reactive": tail loss probe, as the papers have it (CoFUSO section 6.2.1, FUSO section VI-A, after
/// draft-dukkipati-tcpm-tcp-loss-probe-01). When data of a path is un-ACKed at the end of the transaction and
/// two smoothed RTTs have passed since something was sent or acknowledged there, the newest packet goes once
/// more on the same path, so that the ACK shows the loss before a timeout would. One probe until something
/// new is sent or acknowledged.
///
/// Departures: the session lets no probe out beyond the window, so there is none when the window is full; the
/// draft's lower bound of 10 ms and its allowance for delayed ACKs are left out, the papers say 2 RTT.
class Reactive final : public RecoveryPolicy {
 public:
  /// Silence before the probe, in smoothed RTTs (CoFUSO section 6.2.1).
  static constexpr int kProbeRtts = 2;

  std::optional<Protection> choose(const RecoveryView& view) override;
  Time nextDeadline() const override { return deadline_; }

 private:
  Time deadline_ = kNever;
  std::vector<Time> probed_;  ///< by path: the event whose silence was answered with a probe
};

}  // namespace braid
