#pragma once

#include "scheduler/rate/cubic.h"
#include "simnet/tcp/congestion.h"

namespace braid::sim::tcp {

/// CUBIC's window (RFC 9438). The formulas are those of Braid's own class Cubic, which is told of
/// losses and of ACKs in congestion avoidance. Without HyStart++.
class CubicWindow final : public Congestion {
 public:
  /// `rfc8312`: grow by RFC 8312, see Cubic::growAsRfc8312().
  explicit CubicWindow(uint32_t mss, bool rfc8312 = false) : cubic_(mss) {
    if (rfc8312) cubic_.growAsRfc8312();
  }

  double grow(double window, const AckEvent& ack) override;
  double afterLoss(double window, double flight, Time now) override;
  void onTimeout(Time now) override;
  double afterMark(double window, Time now) override { return afterLoss(window, window, now); }

  const Cubic& cubic() const { return cubic_; }

 private:
  void setWindow(double window, Duration srtt);

  Cubic cubic_;
};

}  // namespace braid::sim::tcp
