#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "simnet/tcp/alarm.h"
#include "simnet/tcp/options.h"

namespace braid::sim::tcp {

/// Decides when a SYN or SYN-ACK is resent (RFC 6298), and measures the RTT from its answer.
class SynTimer {
 public:
  /// `again` resends the SYN or SYN-ACK.
  SynTimer(Timeline& timeline, const Options& options, std::function<void()> again)
      : timeline_(timeline),
        again_(std::move(again)),
        rto_(options.initialRto),
        maxRto_(options.maxRto),
        alarm_(timeline, [this] { onAlarm(); }) {}

  void onSent() {
    ++sent_;
    sentAt_ = timeline_.now();
    alarm_.set(timeline_.now() + rto_);
  }
  void stop() { alarm_.set(kNever); }
  /// Number of timeouts.
  uint32_t timeouts() const { return timeouts_; }
  /// The time since the segment was sent; nullopt when it was sent more than once (Karn's rule).
  std::optional<Duration> rtt() const {
    return sent_ == 1 ? std::optional(timeline_.now() - sentAt_) : std::nullopt;
  }

 private:
  void onAlarm() {
    ++timeouts_;
    rto_ = std::min(2 * rto_, maxRto_);
    again_();
  }

  Timeline& timeline_;
  std::function<void()> again_;
  Duration rto_, maxRto_;
  Alarm alarm_;
  Time sentAt_{};
  uint32_t sent_ = 0, timeouts_ = 0;
};

}  // namespace braid::sim::tcp
