#pragma once

#include <cstddef>
#include <cstdint>

#include "base/containers.h"
#include "tunnel/wire/header.h"

namespace braid {

/// Which DSNs of a flow number have been delivered. A DSN is the number of a packet in its flow
/// number, from 0 on. next() is where the history ends; of the kWindow DSNs below it one bit each
/// is known, and all older ones count as delivered. Owners: DuplicateFilter for timely flows, where
/// next() follows the largest DSN seen, and Resequencer, where it is the hole.
class DeliveryHistory {
 public:
  static constexpr uint64_t kWindow = 1024;

  Dsn next() const { return next_; }
  /// Whether `dsn`, which is below next(), was delivered or is too old to know.
  bool delivered(Dsn dsn) const { return next_ - dsn > kWindow || bits_.test(dsn.value()); }
  /// Records that `dsn`, which is below next(), was delivered.
  void mark(Dsn dsn) {
    if (next_ - dsn <= kWindow) bits_.set(dsn.value());
  }
  /// Starts again at `next`: every DSN below it counts as delivered.
  void restart(Dsn next) {
    next_ = next;
    bits_.setAll();
  }
  /// Raises next(); the DSNs in between count as not delivered. `next` is not below next(). Returns
  /// the work, as the number of 64-bit words changed: at most kWindow / 64 + 1, however far the
  /// peer jumps.
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

/// Lets each packet of a timely flow number pass once, in any order. PacketReceiver has one for
/// each flow number in use.
class DuplicateFilter {
 public:
  /// The DSN after the largest one seen; 0 before the first.
  Dsn next() const { return history_.next(); }
  /// True the first time that this DSN is given. False for a duplicate, and for a DSN more than
  /// DeliveryHistory::kWindow below next(), of which that is not known. `dsn` is below 2^62.
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
