#pragma once

#include <cstdint>

namespace braid {

/// Seeded generator (SplitMix64): the same seed gives the same numbers on every machine. Not for keys; what
/// must be unpredictable to an attacker is seeded by the driver from the operating system.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// Uniform in [0, bound); 0 for bound 0. The bias is below bound / 2^64.
  uint64_t below(uint64_t bound) {
    return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * bound) >> 64);
  }
  /// Uniform in [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  /// True with probability p.
  bool chance(double p) { return uniform() < p; }
  /// An independent generator, so that one consumer's draws do not shift another's.
  Random fork() { return Random(next()); }

 private:
  uint64_t state_;
};

}  // namespace braid
