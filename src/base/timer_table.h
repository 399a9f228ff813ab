#pragma once

// The timers of one object. An enum names them, in the order in which they fire when several are due; its
// last value, kCount, is no timer.
//
// Where a deadline is state of its own, a TimerTable keeps it. Where a deadline follows from other state, as
// a probe timeout does from the oldest packet in flight, the object has one function that gives the deadline
// of each timer, and both its nextDeadline() and its onTimer() run over kTimersOf and ask that function.
// Either way each condition of a timer is written once.

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/time.h"

namespace braid {

/// How many timers the enum E names.
template <class E>
inline constexpr size_t kTimerCount = static_cast<size_t>(E::kCount);

/// The timers that the enum E names, in order.
template <class E>
inline constexpr std::array<E, kTimerCount<E>> kTimersOf = [] {
  std::array<E, kTimerCount<E>> timers{};
  for (size_t i = 0; i < timers.size(); ++i) timers[i] = static_cast<E>(i);
  return timers;
}();

/// A deadline for each timer of E; kNever where a timer is stopped. Made for a handful of timers, for next()
/// looks at all of them.
template <class E>
class TimerTable {
 public:
  TimerTable() { deadlines_.fill(kNever); }

  /// `timer` is due at `at` instead of when it was; kNever stops it.
  void set(E timer, Time at) { deadlines_[index(timer)] = at; }
  void stop(E timer) { set(timer, kNever); }
  void stopAll() { deadlines_.fill(kNever); }
  /// When the timer is due; kNever when it is stopped.
  Time at(E timer) const { return deadlines_[index(timer)]; }
  /// The deadline has come. The timer stays due until it is set anew or stopped.
  bool isDue(E timer, Time now) const { return at(timer) <= now; }
  /// The earliest deadline; kNever when all timers are stopped.
  Time next() const { return *std::min_element(deadlines_.begin(), deadlines_.end()); }

 private:
  static constexpr size_t index(E timer) { return static_cast<size_t>(timer); }

  std::array<Time, kTimerCount<E>> deadlines_;
};

}  // namespace braid
