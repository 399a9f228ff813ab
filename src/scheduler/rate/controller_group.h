#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/time.h"
#include "scheduler/rate/shared_bottleneck.h"

namespace braid {

/// What the coupled controllers of one session know of each other, and which of them AMP has suppressed. The
/// first usable member is the "initial subflow" of AMP.
class ControllerGroup {
 public:
  /// One subflow's controller, as the others see it. The record lives in that controller, which keeps it up to
  /// date.
  struct Member {
    double window = 0;           ///< bytes
    Duration srtt{};             ///< smoothed RTT; 0 before the first sample
    bool atMinimum = false;      ///< the window is at its least, in whole datagrams
    bool usable = false;         ///< validated and not suspect, closed or refused
    Time suppressedAt = kNever;  ///< kNever: active
    bool coupled = true;         ///< its window counts for the others', and it can be suppressed
    BottleneckUser user{};       ///< its delays, for controllers that ask for sharing()
    bool takesPart() const { return usable && suppressedAt == kNever; }
    bool isCoupled() const { return coupled && takesPart(); }
  };

  /// The member must leave before it goes.
  void join(Member& member) { members_.push_back(&member); }
  void leave(const Member& member);
  /// A subflow came into use or fell out of it. Without its initial subflow a suppression ends: nobody would
  /// say when congestion is over.
  void setUsable(Member& member, bool usable, Time now);

  /// Sum of the windows of all members that take part, bytes; w_total.
  double totalWindow() const;
  /// Eq. (1) of AMP and (2) of RFC 6356: w_total * max(w/rtt^2) / (sum(w/rtt))^2, over the members that
  /// take part and know their RTT. 1 when none does.
  double alpha() const;
  /// Eq. (3) of AMP: rtt_s/rtt_min * (w_s/rtt_s) / sum(w/rtt), datagrams a window. 1 when no RTT is known.
  double delta(const Member& member) const;

  // ---- shared bottlenecks

  /// How many members that take part share the member's bottleneck, itself included. 1 when none is known to,
  /// when its delays are not fed, and when it takes no part. Decided once per DelaySeries::kInterval.
  size_t sharing(const Member& member, Time now);

  // ---- suppression (AMP, Algorithm 1)

  /// Nobody else's marks and rounds count.
  bool isInitial(const Member& member) const { return initial() == &member; }
  bool suppressing() const { return suppressing_ != nullptr; }
  /// Rounds so far of the current search: with all at the minimum, or while suppressing without marks.
  uint64_t rounds() const { return rounds_; }
  /// How often it suppressed.
  uint64_t episodes() const { return episodes_; }
  /// A window of the initial subflow is over. `marked`: it had marks.
  void onRound(bool marked, uint64_t gamma, uint64_t tau, Time now);

 private:
  const Member* initial() const;
  void suppress(Time now);
  void release();
  void regroup(Time now);

  std::vector<Member*> members_;         // in order of joining
  const Member* suppressing_ = nullptr;  // the initial subflow of the suppression under way
  uint64_t rounds_ = 0;
  uint64_t episodes_ = 0;
  std::vector<BottleneckUser*> users_;  // regroup() only
  Time regroupAt_{};
};

}  // namespace braid
