#pragma once

#include <functional>
#include <utility>

#include "simnet/timeline.h"

namespace braid::sim::tcp {

/// A timer that is set anew far more often than it goes off. Setting it later costs nothing: the call that is
/// pending comes, sees that it is early, and asks for another. Lives as long as the timeline.
class Alarm {
 public:
  Alarm(Timeline& timeline, std::function<void()> ring) : timeline_(timeline), ring_(std::move(ring)) {}
  Alarm(const Alarm&) = delete;
  Alarm& operator=(const Alarm&) = delete;

  Time at() const { return at_; }
  bool isSet() const { return at_ != kNever; }
  /// In place of what was set before; kNever: off.
  void set(Time at) {
    at_ = at;
    if (at_ < pending_) ask();
  }

 private:
  void ask() {
    pending_ = at_;
    timeline_.at(at_, [this, asked = at_] {
      if (asked == pending_) wake();  // else an earlier one took its place
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
  Time at_ = kNever;       // when it is to ring
  Time pending_ = kNever;  // when wake() is called
};

}  // namespace braid::sim::tcp
