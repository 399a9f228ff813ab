#pragma once

#include <algorithm>
#include <vector>

#include "scheduler/recovery/recovery.h"

namespace braid {

/// "proactive": sends every data packet twice on its own path, at once (FUSO section VI-A, after
/// Flach et al., "Reducing Web Latency", SIGCOMM 2013). Nothing else is protected.
class Proactive final : public RecoveryPolicy {
 public:
  Time notBefore(const RecoveryView&) const override { return kNever; }
  std::optional<Protection> choose(const RecoveryView&) override { return std::nullopt; }
  Duplication duplication() const override { return Duplication::kSamePath; }
};

/// "reactive": tail loss probe, as the papers describe it (CoFUSO section 6.2.1, FUSO section VI-A,
/// after draft-dukkipati-tcpm-tcp-loss-probe-01). When data of a path is un-ACKed at the end of the
/// transaction and two smoothed RTTs have passed since something was sent or acknowledged there,
/// the newest packet is sent once more on the same path, so that the ACK shows the loss before a
/// timeout would. There is one probe until something new is sent or acknowledged.
///
/// Differences: the session sends no probe beyond the window, so there is none when the window is
/// full. The draft's lower bound of 10 ms and its allowance for delayed ACKs are left out, because
/// the papers say 2 RTT.
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

/// "corrective": TCP Instant Recovery (CoFUSO section 6.2.1, FUSO section VI-A, after Flach et al.,
/// "Reducing Web Latency", SIGCOMM 2013). The packets that a path sends within a time bin of RTT/4,
/// at most 16, form a block with one XOR parity. The parity is sent on the same path RTT/4 after
/// the bin closed. RTTs are smoothed ones. A bin begins with the oldest packet that is in no block.
///
/// Differences: the parity waits for a moment without new data, as all protection does, and for
/// room in the window. A full bin closes with its sixteenth packet. When more packets were sent
/// since, the time of the sixteenth is not known, and the newest packet's time is used instead,
/// which is at most RTT/4 too late. FUSO has bins of RTT/2.
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

inline std::optional<Protection> Reactive::choose(const RecoveryView& view) {
  if (view.chance != RecoveryChance::kIdle) return std::nullopt;
  if (probed_.size() < view.paths.size()) probed_.resize(view.paths.size(), Time::min());
  deadline_ = kNever;
  std::optional<Protection> probe;
  for (size_t i = 0; i < view.paths.size(); ++i) {
    const RecoveryPath& path = view.paths[i];
    const Time lastEvent = std::max(path.newestSent, path.lastAcked);
    if (path.unacked == 0 || path.srtt == Duration{} || probed_[i] == lastEvent) continue;
    const Time due = lastEvent + kProbeRtts * path.srtt;
    if (view.now < due) {
      deadline_ = std::min(deadline_, due);
    } else if (!path.open) {
      deadline_ = std::min(deadline_, path.opensAt);
    } else if (!probe) {
      probed_[i] = lastEvent;
      probe = Protection{.kind = Protection::Kind::kNewest, .of = i, .on = i};
    }
  }
  return probe;
}

inline Time Corrective::binEnd(const RecoveryPath& path) const {
  const Time byTime = path.oldestUncoded + path.srtt / kPerRtt;
  return path.uncoded >= maxBin_ ? std::min(byTime, path.newestSent) : byTime;
}

inline std::optional<Protection> Corrective::choose(const RecoveryView& view) {
  if (view.chance != RecoveryChance::kIdle) return std::nullopt;
  deadline_ = kNever;
  std::optional<Protection> parity;
  for (size_t i = 0; i < view.paths.size(); ++i) {
    const RecoveryPath& path = view.paths[i];
    if (path.uncoded == 0 || path.srtt == Duration{}) continue;
    const Time end = binEnd(path);
    const Time due = end + path.srtt / kPerRtt;
    if (view.now < due) {
      deadline_ = std::min(deadline_, due);
    } else if (!path.open) {
      deadline_ = std::min(deadline_, path.opensAt);
    } else if (!parity) {
      parity = Protection{.kind = Protection::Kind::kNewBlock,
                          .of = i,
                          .on = i,
                          .symbols = std::min(path.uncoded, maxBin_),
                          .parities = 1,
                          .sentUntil = end};
    }
  }
  return parity;
}

}  // namespace braid
