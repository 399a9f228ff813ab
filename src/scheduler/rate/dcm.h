#pragma once

#include "scheduler/rate/coupled_controller.h"
#include "scheduler/rate/mark_fraction.h"

namespace braid {

/// Data Center MultiPath (AMP section 2.1): the increase of MPTCP (RFC 6356) and the response of DCTCP, with
/// an alpha for each subflow.
class Dcm final : public CoupledController {
 public:
  explicit Dcm(uint64_t datagram, uint64_t initial = kInitialWindow, ControllerGroup* group = nullptr)
      : CoupledController(datagram, initial, kMinimumWindow, group) {}

  /// alpha_s of eq. (2), 0..1.
  double alpha() const { return marks_.value(); }

 protected:
  void observe(const AckSample& ack) override;
  void grow(const AckSample& ack) override;
  double afterMark() const override { return cwnd() * (1 - alpha() / 2); }
  void onReset() override;

 private:
  MarkFraction marks_;
};

}  // namespace braid
