#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>

namespace braid {

/// Which of the last kWindow sequence numbers below next() were delivered.
class DeliveryHistory {
 public:
  static constexpr uint64_t kWindow = 1024;

  uint64_t next() const { return next_; }
  /// True for what was delivered, and for what is too old to know.
  bool delivered(uint64_t dsn) const { return next_ - dsn > kWindow || bits_[dsn % kWindow]; }
  /// Notes that dsn, below next(), was delivered.
  void mark(uint64_t dsn) {
    if (next_ - dsn <= kWindow) bits_[dsn % kWindow] = true;
  }
  /// Moves next() up to `next`; what is passed counts as not delivered.
  void advance(uint64_t next) {
    if (next - next_ >= kWindow) {
      bits_.reset();
    } else {
      for (uint64_t dsn = next_; dsn < next; ++dsn) bits_[dsn % kWindow] = false;
    }
    next_ = next;
  }

 private:
  uint64_t next_ = 0;
  std::bitset<kWindow> bits_;
};

/// Lets every packet of a flow that is not ordered through once. One that is older than
/// DeliveryHistory::kWindow counts as a duplicate.
class DuplicateFilter {
 public:
  /// The sequence number after the largest seen.
  uint64_t next() const { return history_.next(); }
  /// True the first time; dsn is below 2^62.
  bool accept(uint64_t dsn) {
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
