#pragma once

#include <algorithm>

#include "scheduler/rate/controller.h"
#include "scheduler/rate/window_controller.h"

namespace braid {

/// DCTCP's alpha (RFC 8257 section 3.3): an estimate of the fraction of the data that is CE-marked,
/// updated once per window of data.
class MarkFraction {
 public:
  /// g: weight of the newest window (RFC 8257 section 4.2: 1/16).
  static constexpr double kGain = 1.0 / 16;

  /// Counts an ACK with its marks. `datagram`: bytes that each mark stands for.
  void onAck(const AckSample& ack, double datagram) {
    acked_ += static_cast<double>(ack.bytes);
    marked_ += static_cast<double>(ack.marks) * datagram;
    if (ack.largestSentAt < windowEnd_ || acked_ == 0) return;
    alpha_ = (1 - kGain) * alpha_ + kGain * std::min(marked_ / acked_, 1.0);
    acked_ = marked_ = 0;
    windowEnd_ = ack.now;
  }
  /// 0..1; 1 at the start (RFC 8257 section 3.3), so that the first mark halves the window.
  double value() const { return alpha_; }

 private:
  double alpha_ = 1;
  double acked_ = 0, marked_ = 0;  // bytes of the current window of data
  Time windowEnd_ = Time::min();   // the first ACK of what was sent from then on ends that window
};

/// Data Center TCP (RFC 8257): a mark reduces the window by half the fraction of the data that was
/// marked lately. Subflows are not coupled.
class Dctcp final : public WindowController {
 public:
  explicit Dctcp(uint64_t datagram, uint64_t initial = kInitialWindow)
      : WindowController(datagram, initial) {}

  /// DCTCP.Alpha, 0..1.
  double alpha() const { return marks_.value(); }

 protected:
  void observe(const AckSample& ack) override { marks_.onAck(ack, datagram()); }
  void grow(const AckSample& ack) override;
  double afterMark() const override { return cwnd() * (1 - alpha() / 2); }
  void onReset() override { marks_ = {}; }

 private:
  MarkFraction marks_;
};

// Section 3.4 leaves growth as in RFC 5681 section 3.1: one datagram per window.
inline void Dctcp::grow(const AckSample& ack) {
  setWindow(cwnd() + datagram() * static_cast<double>(ack.bytes) / cwnd());
}

}  // namespace braid
