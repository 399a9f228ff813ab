#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "tunnel/wire/frames.h"

namespace braid {

/// Received packet numbers of one subflow, as the ranges that an ACK frame reports. Holds at most kMax
/// ranges: when one more is needed, the lowest is forgotten (RFC 9000 section 13.2.3). Never allocates.
class AckRanges {
 public:
  using Range = AckFrame::Range;
  static constexpr size_t kMax = 64;

  /// Notes a packet number. False when it was there already, or is below kMax ranges and forgotten at once.
  /// O(1) when pn is at or above the largest, else O(kMax).
  bool add(PacketNumber pn);
  /// Forgets every packet number below pn (RFC 9000 section 13.2.4).
  void dropBelow(PacketNumber pn);
  void clear() { count_ = 0; }

  bool contains(PacketNumber pn) const;
  bool empty() const { return count_ == 0; }
  /// Number of ranges.
  size_t size() const { return count_; }
  /// Ranges from the largest (0) down to the smallest (size() - 1); disjoint and not adjacent.
  const Range& range(size_t i) const { return ring_[index(count_ - 1 - i)]; }
  /// The largest packet number; there must be one.
  PacketNumber largest() const { return range(0).last; }
  /// Copies the largest ranges, as many as the frame takes.
  void fill(AckFrame& frame) const;

 private:
  size_t index(size_t i) const { return (head_ + i) % kMax; }
  Range& at(size_t i) { return ring_[index(i)]; }
  const Range& at(size_t i) const { return ring_[index(i)]; }
  /// How many ranges, counted from the smallest, begin at or below pn.
  size_t startingUpTo(PacketNumber pn) const;
  void insert(size_t i, Range range);
  void erase(size_t i);
  void popLowest();

  std::array<Range, kMax> ring_{};  // from head_ on, smallest first
  size_t head_ = 0;
  size_t count_ = 0;
};

}  // namespace braid
