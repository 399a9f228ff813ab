#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bit_ring.h"
#include "tunnel/wire/numbers.h"

namespace braid {

/// Which of the last kWindow DSNs below next() were delivered.
class DeliveryHistory {
 public:
  static constexpr uint64_t kWindow = 1024;

  Dsn next() const { return next_; }
  /// True for what was delivered, and for what is too old to know.
  bool delivered(Dsn dsn) const { return next_ - dsn > kWindow || bits_.test(dsn.value()); }
  /// Notes that dsn, below next(), was delivered.
  void mark(Dsn dsn) {
    if (next_ - dsn <= kWindow) bits_.set(dsn.value());
  }
  /// Begins anew: all below `next` counts as delivered.
  void restart(Dsn next) {
    next_ = next;
    bits_.setAll();
  }
  /// Moves next() up to `next`; what is passed counts as not delivered. Gives the words that it took, at most
  /// kWindow / 64 + 1 however far the peer jumps.
  size_t advance(Dsn next) {
    uint64_t jump = next - next_;
    Dsn from = next_;
    next_ = next;
    if (jump < kWindow) return bits_.clear(from.value(), jump);
    bits_.clearAll();
    return BitRing<kWindow>::kWords;
  }

 private:
  Dsn next_{};
  BitRing<kWindow> bits_;
};

/// Lets every packet of a flow that is not ordered through once. One that is older than
/// DeliveryHistory::kWindow counts as a duplicate.
class DuplicateFilter {
 public:
  /// The DSN after the largest seen.
  Dsn next() const { return history_.next(); }
  /// True the first time; dsn is below 2^62.
  bool accept(Dsn dsn) {
    if (dsn >= history_.next()) {
      history_.advance(dsn + 1);
    } else if (history_.delivered(dsn)) {
      return false;
    }
    history_.mark(dsn);
    return true;
  }

 private:
  DeliveryHistory history_;
};

}  // namespace braid
