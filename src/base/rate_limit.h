#pragma once

#include <cstdint>

#include "base/time.h"

namespace braid {

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
  /// The time from which `count` tokens (at most the burst) can be taken, if none is taken before.
  Time availableAt(const RateLimit& allowance, uint32_t count) const {
    return usedUntil_ + allowance.period * count;
  }

 private:
  Time usedUntil_ = Time(Duration::min() / 2);
};

}  // namespace braid
