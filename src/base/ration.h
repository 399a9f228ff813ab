#pragma once

#include <cstdint>

#include "base/time.h"

namespace braid {

/// So many at once, and one more each period.
struct Allowance {
  uint32_t burst = 1;
  Duration period = 1s;
};

/// What is left of an allowance: a token bucket, as the time until which it is used up (GCRA). Full at first. The
/// same allowance is to be given each time; a time before an earlier one gives nothing back.
class Ration {
 public:
  /// Takes one; false when none is left.
  bool take(const Allowance& allowance, Time now) {
    Time earliest = now - allowance.period * allowance.burst;
    Time used = usedUntil_ < earliest ? earliest : usedUntil_;
    if (used + allowance.period > now) return false;
    usedUntil_ = used + allowance.period;
    return true;
  }
  /// From when on `count` of them, at most the burst, can be taken, if none is before.
  Time availableAt(const Allowance& allowance, uint32_t count) const {
    return usedUntil_ + allowance.period * count;
  }

 private:
  Time usedUntil_ = Time(Duration::min() / 2);
};

}  // namespace braid
