#pragma once

#include <cstdint>

namespace braid::test {

/// The inversion of SplitMix64 (base/random.h), as an attacker would use it. Each step of its
/// output function can be inverted, so one output gives the state, and the state gives all other
/// outputs.
class SplitMix {
 public:
  /// The generator that has just produced this number.
  static SplitMix after(uint64_t number) { return SplitMix(stateOf(number)); }
  /// The seed of a generator whose first number this was.
  static uint64_t seedOf(uint64_t number) { return stateOf(number) - kStep; }

  uint64_t next() {
    uint64_t z = (state_ += kStep);
    z = (z ^ (z >> 30)) * kFirst;
    z = (z ^ (z >> 27)) * kSecond;
    return z ^ (z >> 31);
  }

 private:
  static constexpr uint64_t kStep = 0x9e3779b97f4a7c15;
  static constexpr uint64_t kFirst = 0xbf58476d1ce4e5b9;
  static constexpr uint64_t kSecond = 0x94d049bb133111eb;

  explicit SplitMix(uint64_t state) : state_(state) {}

  static uint64_t stateOf(uint64_t z) {
    z = unshift(z, 31) * inverse(kSecond);
    z = unshift(z, 27) * inverse(kFirst);
    return unshift(z, 30);
  }
  /// Inverts y = x ^ (x >> bits).
  static uint64_t unshift(uint64_t z, int bits) {
    uint64_t x = z;
    for (int known = bits; known < 64; known += bits) x = z ^ (x >> bits);
    return x;
  }
  /// The inverse of an odd factor modulo 2^64. Each round of Newton's method doubles the number of
  /// correct bits.
  static constexpr uint64_t inverse(uint64_t factor) {
    uint64_t x = factor;  // correct in three bits
    for (int i = 0; i < 5; ++i) x *= 2 - factor * x;
    return x;
  }

  uint64_t state_;
};

}  // namespace braid::test
