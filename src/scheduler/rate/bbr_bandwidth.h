#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "scheduler/rate/controller.h"

namespace braid {

/// BBR's estimate of what the bottleneck gives: the highest delivery rate of the last rounds
/// (draft-cardwell-iccrg-bbr-congestion-control-00 sections 2, 4.1.1).
class BbrBandwidth {
 public:
  /// Section 4.1.1.5: rounds that the maximum looks back.
  static constexpr size_t kRounds = 10;

  /// Bytes per second; 0 before the first sample.
  double get() const { return bandwidth_; }

  /// The next ACK is the first of a round.
  void beginRound() { maxima_[++round_ % kRounds] = 0; }
  /// A rate that the sender limited says only that the path gives at least as much (section 4.1.1.4).
  void onAck(const AckSample& ack) {
    if (ack.deliveryRate <= 0) return;
    double& maximum = maxima_[round_ % kRounds];
    if (ack.appLimited && ack.deliveryRate < bandwidth_) {
      maximum = std::max(maximum, bandwidth_);  // nothing new was learnt: the old maximum must not age
      return;
    }
    maximum = std::max(maximum, ack.deliveryRate);
    bandwidth_ = *std::max_element(maxima_.begin(), maxima_.end());
  }

 private:
  double bandwidth_ = 0;
  std::array<double, kRounds> maxima_{};  // by round
  uint64_t round_ = 0;
};

}  // namespace braid
