#pragma once

#include <algorithm>

#include "base/time.h"

namespace braid {

/// Decides whether the tunnel carries packets, without flapping: it is given up when no peer has
/// answered for kPatience, and used again when one has answered for a while without a break. That
/// while doubles each time the tunnel fails soon afterwards. At the start it is used with the first
/// peer that answers.
class TunnelWatch {
 public:
  /// Longer than a radio's pause. Chosen.
  static constexpr Duration kPatience = 1s;
  /// How long it must be well before it is used again. Chosen.
  static constexpr Duration kReturn = 5s, kLongestReturn = 80s;
  /// A failure within this many times the waiting time is soon.
  static constexpr int kSoon = 10;

  bool carries() const { return carries_; }
  /// `answers`: a peer has a path that answers.
  void onChange(bool answers, Time now) {
    if (answers == answers_) return;
    answers_ = answers;
    if (answers == carries_) {
      deadline_ = kNever;
    } else {
      deadline_ = now + (answers ? wait_ : kPatience);
    }
    onTimer(now);
  }
  Time deadline() const { return deadline_; }
  /// True when carries() has changed.
  bool onTimer(Time now) {
    if (now < deadline_) return false;
    deadline_ = kNever;
    carries_ = answers_;
    if (carries_) {
      since_ = now;
      return true;
    }
    bool soon = wait_ > Duration::zero() && now - since_ < kSoon * wait_;
    wait_ = soon ? std::min<Duration>(2 * wait_, kLongestReturn) : kReturn;
    return true;
  }

 private:
  bool answers_ = false, carries_ = false;
  Duration wait_{};  ///< zero: it has not failed yet
  Time since_ = Time{};
  Time deadline_ = kNever;
};

}  // namespace braid
