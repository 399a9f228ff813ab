#pragma once

#include <bit>
#include <cstdint>

namespace braid {

/// In which of the last kIntervals intervals CE marks came on one subflow. The intervals of the
/// subflows that are compared begin at the same times; the owner of the histories ends them.
/// Subflows that queue at the same bottleneck are marked at the same times.
class MarkHistory {
 public:
  static constexpr int kIntervals = 64;
  /// Two subflows are compared when at least one of them was marked in this many intervals in which
  /// both were heard. Chosen: responses of some hundred datagrams are over before.
  static constexpr int kLeast = 8;

  /// An ACK came with this number of new CE marks.
  void onAck(uint64_t marks) {
    heard_ |= 1;
    if (marks > 0) marked_ |= 1;
  }
  /// An interval ends.
  void advance() {
    heard_ <<= 1;
    marked_ <<= 1;
  }
  /// Forgets everything: the path is another one.
  void reset() { *this = {}; }

  /// Whether the two subflows were marked together: in at least half of the intervals in which one
  /// of them was.
  friend bool shareMarks(const MarkHistory& a, const MarkHistory& b) {
    uint64_t common = a.heard_ & b.heard_;
    int either = std::popcount((a.marked_ | b.marked_) & common);
    int both = std::popcount(a.marked_ & b.marked_ & common);
    return either >= kLeast && 2 * both >= either;
  }

 private:
  // The lowest bit is the current interval.
  uint64_t heard_ = 0;   // ACKs came
  uint64_t marked_ = 0;  // ACKs with marks came
};

}  // namespace braid
