#pragma once

#include "scheduler/rate/mark_fraction.h"
#include "scheduler/rate/window_controller.h"

namespace braid {

/// Data Center TCP (RFC 8257): a mark takes as much of the window as of the data was marked lately, halved.
/// Every subflow for itself.
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

}  // namespace braid
