#pragma once

#include <algorithm>
#include <functional>
#include <utility>

#include "simnet/tcp/alarm.h"
#include "simnet/tcp/rto.h"

namespace braid::sim::tcp {

/// The sender's three timers on one alarm: retransmission (RFC 6298), tail loss probe, and RACK's
/// reordering timer (RFC 8985).
class SenderTimers {
 public:
  enum class Kind : uint8_t { kProbe, kTimeout, kReorder };

  SenderTimers(Timeline& timeline, const Options& options, std::function<void(Kind)> ring)
      : rto(options),
        timeline_(timeline),
        ring_(std::move(ring)),
        alarm_(timeline, [this] { onAlarm(); }) {}

  Rto rto;

  /// Restarts the retransmission timer with the current RTO.
  void restart() { timeoutAt_ = timeline_.now() + rto.value(); }
  /// Restarts the retransmission timer; it fires after `wait`.
  void restartWith(Duration wait) { timeoutAt_ = timeline_.now() + wait; }
  bool runs() const { return timeoutAt_ != kNever; }
  /// Schedules a probe after `wait`, but not later than the retransmission timer.
  void setProbe(Duration wait) { probeAt_ = std::min(timeline_.now() + wait, timeoutAt_); }
  void clearProbe() { probeAt_ = kNever; }
  void setReorder(Time at) { reorderAt_ = at; }
  void stop() { timeoutAt_ = probeAt_ = reorderAt_ = kNever; }
  /// Puts the times set above into effect. Call it after changing them.
  void apply() { alarm_.set(std::min({timeoutAt_, probeAt_, reorderAt_})); }

 private:
  void onAlarm() {
    Time now = timeline_.now();
    if (probeAt_ <= now) return ring(probeAt_, Kind::kProbe);
    if (timeoutAt_ <= now) return ring(timeoutAt_, Kind::kTimeout);
    if (reorderAt_ <= now) return ring(reorderAt_, Kind::kReorder);
  }
  void ring(Time& at, Kind kind) {
    at = kNever;
    ring_(kind);
    apply();
  }

  Timeline& timeline_;
  std::function<void(Kind)> ring_;
  Alarm alarm_;
  Time timeoutAt_ = kNever, probeAt_ = kNever, reorderAt_ = kNever;
};

}  // namespace braid::sim::tcp
