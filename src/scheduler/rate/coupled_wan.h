#pragma once

#include "scheduler/rate/controller_group.h"
#include "scheduler/rate/wan.h"

namespace braid {

/// `wan` for one of several subflows: tells it how many of the group share its bottleneck.
class CoupledWan final : public Controller {
 public:
  /// `group` must outlive it; nullptr: alone.
  CoupledWan(uint64_t datagram, uint64_t initial, ControllerGroup* group);
  ~CoupledWan() override;
  CoupledWan(const CoupledWan&) = delete;
  CoupledWan& operator=(const CoupledWan&) = delete;

  void onSent(uint64_t bytes, uint64_t inFlight, Time now) override { wan_.onSent(bytes, inFlight, now); }
  void onAck(const AckSample& ack) override;
  void onLoss(const LossSample& loss) override { wan_.onLoss(loss); }
  void onMarks(uint64_t marks, Time largestSentAt, Time now) override {
    wan_.onMarks(marks, largestSentAt, now);
  }
  void onSpuriousLoss(Time sentAt, Time now) override { wan_.onSpuriousLoss(sentAt, now); }
  void setUsable(bool usable, Time now) override;
  void reset(Time now) override;
  uint64_t window() const override { return wan_.window(); }
  double pacingRate() const override { return wan_.pacingRate(); }
  double burst() const override { return wan_.burst(); }

 private:
  Wan wan_;
  ControllerGroup* group_;
  ControllerGroup::Member member_;
};

}  // namespace braid
