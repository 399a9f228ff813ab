#pragma once

#include <cstddef>

#include "base/time.h"
#include "simnet/link/link_options.h"

namespace braid {

/// The state of a policer: a token bucket (RFC 2697 section 3 without the excess bucket, in bytes
/// of IP packet) that begins full. A packet that finds too few tokens must be dropped and takes
/// none. Each call takes O(1).
class PolicerBucket {
 public:
  /// `policer.bitsPerSecond` is above 0.
  PolicerBucket(const Policer& policer, Time now)
      : rate_(policer.bitsPerSecond / 8),
        size_(static_cast<double>(policer.burstBytes)),
        tokens_(size_),
        at_(now) {}

  /// Takes tokens for a packet; false when there are too few. `now` must not decrease.
  bool take(size_t bytes, Time now);

 private:
  double rate_;    // bytes per second
  double size_;    // bytes
  double tokens_;  // bytes, at at_
  Time at_;
};

}  // namespace braid
