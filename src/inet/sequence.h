#pragma once

#include <cstdint>

namespace braid {

/// A TCP sequence number (RFC 9293 section 3.4): 32 bits that wrap. The order is that of numbers less than
/// 2^31 apart, which all that belongs to one window are; it is no order of any three numbers.
struct Seq {
  uint32_t value = 0;

  constexpr bool operator==(const Seq&) const = default;
  friend constexpr Seq operator+(Seq s, uint32_t n) { return {s.value + n}; }
  /// How far a is behind b; negative when it is before b.
  friend constexpr int32_t operator-(Seq a, Seq b) { return static_cast<int32_t>(a.value - b.value); }
  friend constexpr bool operator<(Seq a, Seq b) { return a - b < 0; }
  friend constexpr bool operator>(Seq a, Seq b) { return a - b > 0; }
  friend constexpr bool operator<=(Seq a, Seq b) { return a - b <= 0; }
  friend constexpr bool operator>=(Seq a, Seq b) { return a - b >= 0; }
};

/// From the first number to the one behind the last.
struct SeqRange {
  Seq begin;
  Seq end;
  constexpr bool operator==(const SeqRange&) const = default;
  constexpr bool empty() const { return begin == end; }
};

}  // namespace braid
