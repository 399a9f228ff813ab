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

}  // namespace braid
