#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>

#include "tunnel/wire/numbers.h"

namespace braid {

/// Which of the last kWindow DSNs below next() were delivered.
class DeliveryHistory {
 public:
  static constexpr uint64_t kWindow = 1024;

  Dsn next() const { return next_; }
  /// True for what was delivered, and for what is too old to know.
  bool delivered(Dsn dsn) const { return next_ - dsn > kWindow || bits_[place(dsn)]; }
  /// Notes that dsn, below next(), was delivered.
  void mark(Dsn dsn) {
    if (next_ - dsn <= kWindow) bits_[place(dsn)] = true;
  }
  /// Begins anew: all below `next` counts as delivered.
  void restart(Dsn next) {
    next_ = next;
    bits_.set();
  }
  /// Moves next() up to `next`; what is passed counts as not delivered.
  void advance(Dsn next) {
    if (next - next_ >= kWindow) {
      bits_.reset();
    } else {
      for (Dsn dsn = next_; dsn < next; ++dsn) bits_[place(dsn)] = false;
    }
    next_ = next;
  }

 private:
  static size_t place(Dsn dsn) { return dsn.value() % kWindow; }

  Dsn next_{};
  std::bitset<kWindow> bits_;
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
