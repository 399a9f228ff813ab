#pragma once

#include "simnet/tcp/congestion.h"

namespace braid::sim::tcp {

/// NewReno's window (RFC 5681 section 3.1, counted in bytes as in RFC 3465): it grows by one
/// segment per round trip and falls to half of the bytes in flight after a loss.
class NewReno : public Congestion {
 public:
  explicit NewReno(uint32_t mss) : mss_(mss) {}

  double grow(double window, const AckEvent& ack) override {
    return ack.used ? window + mss_ * static_cast<double>(ack.acked) / window : window;
  }
  double afterLoss(double, double flight, Time) override { return flight / 2; }
  double afterMark(double window, Time) override { return window / 2; }

 private:
  double mss_;
};

}  // namespace braid::sim::tcp
