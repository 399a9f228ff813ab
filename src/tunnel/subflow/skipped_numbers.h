#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "tunnel/wire/frames.h"
#include "tunnel/wire/secret_random.h"

namespace braid {

/// Packet numbers of one subflow that are left out on purpose, so that a peer which acknowledges what has not
/// reached it, to be sent more than the path carries, is found out (RFC 9000 section 21.4). Nobody can tell from
/// the numbers that were used which one is left out next.
class SkippedNumbers {
 public:
  /// From one to the next it is at least so far, so that loss detection meets one at a time, and at most so far;
  /// each distance is as likely. Rare, for a receiver has to look at each as a hole. Ours.
  static constexpr uint64_t kLeast = 8;
  static constexpr uint64_t kMost = 8192;
  /// So many are remembered, the newest ones: more than there usually are among the numbers that a sender remembers.
  /// Ours.
  static constexpr size_t kKept = 16;

  /// `random` must outlive it.
  explicit SkippedNumbers(SecretRandom& random) : random_(random), due_(PacketNumber(distance())) {}

  /// Whether `next`, the number of the packet that is to leave, is to be left out instead.
  bool isDue(PacketNumber next) const { return next >= due_; }
  /// It is left out.
  void onSkipped(PacketNumber pn) {
    kept_[count_++ % kKept] = pn;
    due_ = pn + distance();
  }
  /// Whether the ACK names one.
  bool isIn(const AckFrame& ack) const {
    size_t range = 0;
    for (size_t back = 1; back <= std::min(count_, kKept); ++back) {  // downwards, as the ranges go
      PacketNumber pn = kept_[(count_ - back) % kKept];
      while (range < ack.count && ack.ranges[range].first > pn) ++range;
      if (range == ack.count) return false;
      if (pn <= ack.ranges[range].last) return true;
    }
    return false;
  }

 private:
  uint64_t distance() { return kLeast + random_.below(kMost - kLeast + 1); }

  SecretRandom& random_;
  PacketNumber due_;
  std::array<PacketNumber, kKept> kept_{};
  size_t count_ = 0;
};

}  // namespace braid
