#pragma once

#include <compare>
#include <vector>

#include "base/time.h"
#include "simnet/link/link_options.h"

namespace braid {

/// A time with its fraction of a nanosecond, so that rounding errors do not add up over many
/// packets.
struct ExactTime {
  Time time{};
  double fraction = 0;  ///< nanoseconds, [0, 1)
  Time rounded() const { return fraction >= 0.5 ? time + Duration{1} : time; }
  auto operator<=>(const ExactTime&) const = default;
};

/// Computes when bits leave: at a constant rate, without limit, or by a looping trace. Each call
/// takes O(log steps).
class Transmitter {
 public:
  /// Takes the rate or the trace from `options`; a trace begins at `origin`.
  Transmitter(const LinkOptions& options, Time origin);

  bool unlimited() const { return rate_ == 0 && steps_.empty(); }
  /// The time at which the last of `bits` has left if the first leaves at `start` (not before the
  /// origin).
  ExactTime finish(ExactTime start, double bits) const;
  /// Number of bits that can leave in [from, to]; not meaningful when unlimited.
  double bitsBetween(ExactTime from, ExactTime to) const;

 private:
  struct Step {
    double endNs;    // from the beginning of the trace
    double endBits;  // bits sent from the beginning of the trace until endNs
    double bitsPerNs;
  };
  double bitsInLoop(double ns) const;

  double rate_ = 0;  // bits per nanosecond
  Time origin_;
  std::vector<Step> steps_;
};

}  // namespace braid
