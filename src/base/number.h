#pragma once

#include <compare>
#include <concepts>

namespace braid {

/// A strongly typed number: numbers of different kinds cannot be mixed up. `Tag` names the kind and
/// is never defined. `Rep` is the underlying integer; arithmetic wraps as it does, and numbers are
/// ordered as its values are.
///
/// As cheap as a Rep. Like a Rep it is uninitialized by default; a member is initialized to 0 by
/// `{}`.
template <class Tag, std::unsigned_integral Rep>
class Number {
 public:
  Number() = default;
  explicit constexpr Number(Rep value) : value_(value) {}

  constexpr Rep value() const { return value_; }

  friend constexpr auto operator<=>(Number, Number) = default;

  constexpr Number& operator++() {
    ++value_;
    return *this;
  }
  constexpr Number operator++(int) {
    Number before = *this;
    ++value_;
    return before;
  }
  constexpr Number& operator+=(Rep n) { return *this = *this + n; }
  friend constexpr Number operator+(Number a, Rep n) {
    return Number(static_cast<Rep>(a.value_ + n));
  }
  friend constexpr Number operator-(Number a, Rep n) {
    return Number(static_cast<Rep>(a.value_ - n));
  }
  /// How far a is ahead of b, modulo the numbers that a Rep has.
  friend constexpr Rep operator-(Number a, Number b) {
    return static_cast<Rep>(a.value_ - b.value_);
  }

 private:
  Rep value_;
};

}  // namespace braid
