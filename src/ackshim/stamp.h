#pragma once

#include <cstdint>

#include "base/time.h"

namespace braid {

/// A time in 32 bits: microseconds that wrap every 71 minutes. Only stamps less than 35 minutes apart may be
/// compared; flows are forgotten long before (AckShimOptions::kMaxIdle).
struct Stamp {
  uint32_t us = 0;

  static constexpr Stamp of(Time t) { return {static_cast<uint32_t>(t.time_since_epoch() / 1us)}; }
  friend constexpr Duration operator-(Stamp a, Stamp b) { return 1us * static_cast<int32_t>(a.us - b.us); }
  friend constexpr Stamp operator+(Stamp s, Duration d) { return {s.us + static_cast<uint32_t>(d / 1us)}; }
};

/// The later of two.
constexpr Stamp latest(Stamp a, Stamp b) {
  return a - b > Duration(0) ? a : b;
}

}  // namespace braid
