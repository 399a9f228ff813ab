#pragma once

#include "scheduler/rate/coupled_controller.h"

namespace braid {

/// XMP (Cao et al., CoNEXT 2013) as AMP section 2.2 gives it: delta datagrams per window, a cut by a constant
/// factor on marks.
class Xmp final : public CoupledController {
 public:
  /// A mark takes 1/kBeta of the window.
  static constexpr double kBeta = 4;

  explicit Xmp(uint64_t datagram, uint64_t initial = kInitialWindow, ControllerGroup* group = nullptr)
      : CoupledController(datagram, initial, kMinimumWindow, group) {}

 protected:
  void grow(const AckSample& ack) override;
  double afterMark() const override { return cwnd() * (1 - 1 / kBeta); }
  void onReset() override;

 private:
  Time windowBegan_ = Time::min();
};

}  // namespace braid
