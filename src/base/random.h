#pragma once

#include <cstdint>

namespace braid {

/// A seeded pseudo-random generator (SplitMix64): the same seed gives the same numbers on every
/// machine. Not cryptographic: anybody who sees one number can compute all others and the seed. So
/// each generator has one use whose numbers nobody outside sees, or in which nothing is lost when
/// they are predicted (waits, ties). Everything else, including the seeds of these generators,
/// comes from SecretRandom (tunnel/wire/secrets.h).
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
