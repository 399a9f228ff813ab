#pragma once

#include <functional>
#include <utility>

#include "simnet/timeline.h"

namespace braid::sim::tcp {

/// A timer for uses where it is moved far more often than it fires. Moving it to a later time costs
/// nothing: the pending timeline call sees that it is early and schedules another. Lives as long as
/// the timeline.
class Alarm {
 public:
  Alarm(Timeline& timeline, std::function<void()> ring)
      : timeline_(timeline), ring_(std::move(ring)) {}
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  Time at() const { return at_; }
  bool isSet() const { return at_ != kNever; }
  /// Replaces the time that was set before; kNever turns the alarm off.
  void set(Time at) {
    at_ = at;
    if (at_ < pending_) ask();
  }

 private:
  void ask() {
    pending_ = at_;
    timeline_.at(at_, [this, asked = at_] {
      if (asked == pending_) wake();  // else an earlier call has replaced this one
    });
  }
  void wake() {
    pending_ = kNever;
    if (at_ == kNever) return;
    if (at_ > timeline_.now()) return ask();
    at_ = kNever;
    ring_();
  }

  Timeline& timeline_;
  std::function<void()> ring_;
  Time at_ = kNever;       // when the alarm is due
  Time pending_ = kNever;  // when wake() will be called
};

}  // namespace braid::sim::tcp
