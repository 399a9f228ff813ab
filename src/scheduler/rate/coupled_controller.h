#pragma once

#include <memory>

#include "scheduler/rate/controller_group.h"
#include "scheduler/rate/window_controller.h"

namespace braid {

/// A controller that shares a ControllerGroup with those of the session's other subflows.
class CoupledController : public WindowController {
 public:
  ~CoupledController() override { group_->leave(member_); }
  CoupledController(const CoupledController&) = delete;
  CoupledController& operator=(const CoupledController&) = delete;

  void setUsable(bool usable, Time now) override { group_->setUsable(member_, usable, now); }
  Time suppressedAt() const override { return member_.suppressedAt; }
  const ControllerGroup& group() const { return *group_; }

 protected:
  /// Without a group it is alone in one of its own.
  CoupledController(uint64_t datagram, uint64_t initial, uint64_t minimum, ControllerGroup* group)
      : WindowController(datagram, initial, minimum),
        own_(group ? nullptr : std::make_unique<ControllerGroup>()),
        group_(group ? group : own_.get()) {
    group_->join(member_);
    update();
    if (own_) member_.usable = true;
  }

  void observe(const AckSample&) override { member_.srtt = srtt(); }
  void onWindow() override { update(); }
  void onReset() override { member_.srtt = srtt(); }

  ControllerGroup& shared() { return *group_; }
  const ControllerGroup::Member& member() const { return member_; }

 private:
  void update() {
    member_.window = cwnd();
    member_.atMinimum = cwnd() < static_cast<double>(minimumWindow()) + datagram();
  }

  std::unique_ptr<ControllerGroup> own_;
  ControllerGroup* group_;
  ControllerGroup::Member member_;
};

}  // namespace braid
