#pragma once

#include "scheduler/rate/coupled_controller.h"

namespace braid {

/// Linked increases (RFC 6356): the subflows together take as much as one TCP on the best of their paths
/// would.
class Lia final : public CoupledController {
 public:
  /// `beta`: a mark takes 1/beta of the window, at least 2.
  explicit Lia(uint64_t datagram, uint64_t initial = kInitialWindow, ControllerGroup* group = nullptr,
               double beta = 2)
      : CoupledController(datagram, initial, kMinimumWindow, group), beta_(beta) {}

  /// Section 3, eq. (1): min(alpha * acked * MSS / w_total, acked * MSS / w), bytes.
  static double increase(const ControllerGroup& group, double window, double acked, double datagram);

 protected:
  void grow(const AckSample& ack) override;
  double afterMark() const override { return cwnd() * (1 - 1 / beta_); }

 private:
  double beta_;
};

}  // namespace braid
