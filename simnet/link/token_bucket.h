#pragma once

#include <cstddef>

#include "base/time.h"
#include "simnet/link/link_options.h"

namespace braid {

/// A policer at work: a token bucket (RFC 2697 section 3 without the excess bucket, in bytes of IP packet)
/// that begins full. What finds too few tokens is to be dropped and takes none. Each call O(1).
class TokenBucket {
 public:
  /// `policer.bitsPerSecond` is above 0.
  TokenBucket(const Policer& policer, Time now)
      : rate_(policer.bitsPerSecond / 8),
        size_(static_cast<double>(policer.burstBytes)),
        tokens_(size_),
        at_(now) {}

  /// Takes tokens for a packet; false when it exceeds them. `now` must not go back.
  bool take(size_t bytes, Time now);

 private:
  double rate_;    // bytes per second
  double size_;    // bytes
  double tokens_;  // bytes, at at_
  Time at_;
};

}  // namespace braid
