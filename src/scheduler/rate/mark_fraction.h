#pragma once

#include <algorithm>

#include "scheduler/rate/controller.h"

namespace braid {

/// DCTCP's estimate of the part of the data that is marked, alpha (RFC 8257 section 3.3), updated once per
/// window of data.
class MarkFraction {
 public:
  /// g: weight of the newest window (RFC 8257 section 4.2: 1/16).
  static constexpr double kGain = 1.0 / 16;

  /// Takes in an ACK with its marks. `datagram`: bytes that a mark stands for.
  void onAck(const AckSample& ack, double datagram) {
    acked_ += static_cast<double>(ack.bytes);
    marked_ += static_cast<double>(ack.marks) * datagram;
    if (ack.largestSentAt < windowEnd_ || acked_ == 0) return;
    alpha_ = (1 - kGain) * alpha_ + kGain * std::min(marked_ / acked_, 1.0);
    acked_ = marked_ = 0;
    windowEnd_ = ack.now;
  }
  /// 0..1; 1 at the start (RFC 8257 section 3.3): the first mark halves.
  double value() const { return alpha_; }

 private:
  double alpha_ = 1;
  double acked_ = 0, marked_ = 0;  // bytes of the window so far
  Time windowEnd_ = Time::min();   // it ends with the first ACK of what was sent from then on
};

}  // namespace braid
