#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace braid {

/// How many packets in flight may be sent again elsewhere because their path is silent for longer than its RTT and
/// variance explain, but not long enough to be called suspect. After a path has died that saves a round trip; where a
/// path only jitters, each of them may go for nothing. So it is a small share of what the path carries: a path that
/// stumbles now and then has all of it each time, one that jitters always costs no more than that share. Ours.
class DoubtBudget {
 public:
  /// About what paths of 50 Mbit/s and 60 ms have in flight.
  static constexpr uint64_t kMost = 256;
  /// Packets sent for each one more.
  static constexpr uint64_t kShare = 64;

  /// So many may be sent again now that the path has carried `sent` packets in its life.
  size_t left(uint64_t sent) {
    uint64_t earned = (sent - countedTo_) / kShare;
    countedTo_ += earned * kShare;
    left_ = std::min(kMost, left_ + earned);
    return static_cast<size_t>(left_);
  }
  /// So many were, at most what was left.
  void spend(size_t count) { left_ -= count; }

 private:
  uint64_t left_ = kMost;
  uint64_t countedTo_ = 0;  // packets sent
};

}  // namespace braid
