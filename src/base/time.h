#pragma once

#include <chrono>
#include <cstdint>

namespace braid {

/// The clock type of the times that drivers pass to the core. It has no now(), because the core
/// never reads a clock: the daemon passes times of CLOCK_MONOTONIC, tests pass virtual ones.
struct CoreClock {
  using duration = std::chrono::nanoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<CoreClock>;
  static constexpr bool is_steady = true;
};

using Duration = CoreClock::duration;
using Time = CoreClock::time_point;

/// No deadline: later than every time that a driver can pass.
inline constexpr Time kNever = Time::max();

using namespace std::chrono_literals;  // NOLINT: 5ms and 1s read as units everywhere in the project

/// A duration in milliseconds, for reports.
constexpr double toMilliseconds(Duration d) {
  return std::chrono::duration<double, std::milli>(d).count();
}
/// A duration in seconds, for rates.
constexpr double toSeconds(Duration d) {
  return std::chrono::duration<double>(d).count();
}
/// A duration of `s` seconds, rounded towards zero to nanoseconds.
constexpr Duration fromSeconds(double s) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(s));
}

/// Allows `burst` events at once, and one more each `period`.
struct RateLimit {
  uint32_t burst = 1;
  Duration period = 1s;
};

/// A token bucket, stored as the time until which its tokens are used up (GCRA). It is full at
/// first. Pass the same RateLimit each time. A time earlier than the last one adds no tokens.
class TokenBucket {
 public:
  /// Takes one token; false when none is left.
  bool take(const RateLimit& allowance, Time now) {
    Time earliest = now - allowance.period * allowance.burst;
    Time used = usedUntil_ < earliest ? earliest : usedUntil_;
    if (used + allowance.period > now) return false;
    usedUntil_ = used + allowance.period;
    return true;
  }
  /// Gives one token back that was taken.
  void giveBack(const RateLimit& allowance) { usedUntil_ -= allowance.period; }
  /// The time from which `count` tokens (at most the burst) can be taken, if none is taken before.
  Time availableAt(const RateLimit& allowance, uint32_t count) const {
    return usedUntil_ + allowance.period * count;
  }

 private:
  Time usedUntil_ = Time(Duration::min() / 2);
};

}  // namespace braid
