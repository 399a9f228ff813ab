#pragma once

#include <optional>
#include <string>

#include "base/time.h"

namespace braid {

/// The host's clocks at one moment, each since its own beginning.
struct ClockReading {
  Duration monotonic{};  ///< does not advance while the machine is suspended
  Duration boot{};       ///< advances while it is suspended, too
  Duration wall{};       ///< the time of day, which is set
  /// How long the reading took: what the clocks may differ by although they agree.
  Duration took{};
};

/// Finds out from the host's clocks whether the machine stood still meanwhile. Its memory may then
/// be a copy, from which it goes on a second time, or from which another machine goes on.
///
///     the boot time has advanced more than the monotonic time       the machine was suspended
///     the wall clock of a virtual machine was set forward by far    it may go on from a snapshot,
///                                                                   whose clock was behind
///
/// The second one is a hint only: somebody may have set the clock. A clock that is set back, or
/// by little, says nothing.
class ClockWatch {
 public:
  /// The least of each difference that counts. Chosen: no machine is suspended for less than 100
  /// ms; leap seconds and small corrections of the time of day are far below 10 s.
  static constexpr Duration kLeastSuspension = 100ms;
  static constexpr Duration kLeastStep = 10s;
  /// A reading that took longer was interrupted, and says nothing.
  static constexpr Duration kLongestReading = 10ms;

  /// `isVirtual`: this is a virtual machine, so the second sign counts.
  explicit ClockWatch(bool isVirtual) : isVirtual_(isVirtual) {}

  /// Compares a reading with the one before. Returns a line that says what has happened;
  /// nullopt: nothing was seen.
  std::optional<std::string> take(const ClockReading& now);

 private:
  struct Offsets {
    Duration suspended, wall;  ///< how far the boot time and the wall clock are ahead
  };
  bool isVirtual_;
  std::optional<Offsets> before_;
};

inline std::optional<std::string> ClockWatch::take(const ClockReading& now) {
  if (now.took > kLongestReading) return std::nullopt;
  const Offsets next{now.boot - now.monotonic, now.wall - now.boot};
  const Offsets before = before_.value_or(next);
  before_ = next;
  auto seconds = [](Duration d) { return std::to_string((d + 999ms) / 1s) + " s"; };
  if (Duration slept = next.suspended - before.suspended; slept >= kLeastSuspension)
    return "this machine was suspended for " + seconds(slept);
  if (Duration step = next.wall - before.wall; isVirtual_ && step >= kLeastStep)
    return "the clock of this virtual machine was set forward by " + seconds(step) +
           ", as after it was resumed from a snapshot";
  return std::nullopt;
}

}  // namespace braid
