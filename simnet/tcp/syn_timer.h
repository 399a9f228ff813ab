#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "simnet/tcp/alarm.h"
#include "simnet/tcp/options.h"

namespace braid::sim::tcp {

/// When SYN or SYN-ACK is sent again (RFC 6298), and what RTT the answer shows.
class SynTimer {
 public:
  /// `again` sends it once more.
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
  /// Times that no answer came.
  uint32_t timeouts() const { return timeouts_; }
  /// The time since it was sent, when that was once (Karn).
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
