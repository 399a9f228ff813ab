#pragma once

#include <cstdint>
#include <limits>
#include <memory>

#include "scheduler/rate/controller.h"
#include "scheduler/rate/controller_group.h"

namespace braid {

/// What the window-based controllers share: slow start, at most one reduction per window of data,
/// no growth of a window that is not used, a restart after idle time, undo of reductions for
/// spurious losses, and pacing. A derived class says how the window grows in congestion avoidance
/// and how far a mark or loss reduces it.
class WindowController : public Controller {
 public:
  /// Pacing rate in windows per smoothed RTT: in congestion avoidance (RFC 9002 section 7.7), and
  /// in slow start, in which the window doubles each round.
  static constexpr double kPacingGain = 1.25;
  static constexpr double kSlowStartPacingGain = 2;
  /// Smallest window in datagrams: AMP section 3.2 (cwnd_min), RFC 9002 section 7.2.
  static constexpr uint64_t kMinimumWindow = 2;
  /// In congestion avoidance, a sender that ran out of data counts as using its window when at most
  /// kSlackDatagrams more datagrams would fill it. RFC 9002 section 7.8 leaves the test to the
  /// sender.
  static constexpr uint64_t kSlackDatagrams = 3;
  /// The window starts again from the initial window after an idle time of more than kIdle, or of
  /// kIdleRtts smoothed RTTs if that is longer. RFC 5681 section 4.1 says one RTO, which is at
  /// least one second by RFC 6298, rule (2.4).
  static constexpr Duration kIdle = 1s;
  static constexpr int kIdleRtts = 4;
  /// Slow start after idle time ends at this fraction of the old window (RFC 2861 section 3).
  static constexpr double kIdleThreshold = 0.75;

  void onSent(uint64_t bytes, uint64_t inFlight, Time now) override;
  void onAck(const AckSample& ack) override;
  void onLoss(const LossSample& loss) override;
  void onMarks(uint64_t marks, Time largestSentAt, Time now) override;
  void onSpuriousLoss(Time sentAt, Time now) override;
  void reset(Time now) override;
  uint64_t window() const override { return static_cast<uint64_t>(window_); }
  double pacingRate() const override;

  bool inSlowStart() const { return window_ < threshold_; }
  /// Initial window in bytes (RFC 9002 section 7.2): the configured number of datagrams, each
  /// counted with at most 14720 / 10 bytes, but at least two full datagrams.
  uint64_t initialWindow() const;
  uint64_t minimumWindow() const { return minimum_ * datagram_; }
  /// Continues in congestion avoidance with a window (bytes) and an RTT that another controller
  /// learned.
  void resume(double window, Duration srtt);

 protected:
  /// `datagram`: bytes of a full datagram; `initial` and `minimum`: datagrams of the initial and of
  /// the smallest window.
  WindowController(uint64_t datagram, uint64_t initial, uint64_t minimum = kMinimumWindow);

  /// Grows the window in congestion avoidance. Called when `ack.bytes` of a window in use were
  /// acknowledged.
  virtual void grow(const AckSample& ack) = 0;
  /// The window (bytes) after a mark. Asked at most once per window of data.
  virtual double afterMark() const = 0;
  /// The window (bytes) after a loss. Asked at most once per window of data. RFC 5681: half.
  virtual double afterLoss() const { return window_ / 2; }
  /// Called for every ACK, before anything else is done with it.
  virtual void observe(const AckSample&) {}
  /// Called before the window is reduced.
  virtual void onReduction() {}
  /// Called after a reduction was undone.
  virtual void onUndo() {}
  /// Called when what was learned is void: reset(), restart after idle time, persistent congestion.
  virtual void onReset() {}
  /// Called after the window has changed.
  virtual void onWindow() {}
  /// Called for an ACK when the window was not in use, with the time since the ACK before.
  virtual void onUnused(Duration) {}

  double datagram() const { return static_cast<double>(datagram_); }
  double cwnd() const { return window_; }
  void setWindow(double bytes);
  Duration srtt() const { return srtt_; }

 private:
  static constexpr Time kNone = Time::min();
  bool isUtilised(const AckSample& ack) const;
  void reduce(double window);

  uint64_t datagram_;
  uint64_t initial_;
  uint64_t minimum_;
  double window_;
  double threshold_ = std::numeric_limits<double>::infinity();
  Duration srtt_{};
  Time lastSent_ = kNone;
  Time lastAck_ = kNone;
  // The last reduction for a loss, and for a mark. Losses of, and marks on, packets sent before it
  // cause no further reduction.
  Time lossAt_ = kNone;
  Time markAt_ = kNone;

  struct Undo {
    bool possible = false;
    double window = 0;
    double threshold = 0;
    Time lossAt = kNone;
    uint64_t lost = 0;  ///< packets of the reduced window that still count as lost
  };
  Undo undo_;
};

/// A window-based controller that shares a ControllerGroup with the controllers of the session's
/// other subflows.
class CoupledController : public WindowController {
 public:
  ~CoupledController() override { group_->leave(member_); }
  CoupledController(const CoupledController&) = delete;
  CoupledController& operator=(const CoupledController&) = delete;

  void setUsable(bool usable, Time now) override { group_->setUsable(member_, usable, now); }
  Time suppressedAt() const override { return member_.suppressedAt; }
  const ControllerGroup& group() const { return *group_; }

 protected:
  /// `group` nullptr: the controller is alone in a group of its own.
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
  void onReset() override {
    member_.srtt = srtt();
    member_.marks.reset();
  }

  ControllerGroup& shared() { return *group_; }
  const ControllerGroup::Member& member() const { return member_; }
  /// Reports an ACK's marks to the group, for ControllerGroup::windowSharingMarks().
  void noteMarks(const AckSample& ack) { group_->onMarks(member_, ack.marks, ack.now); }

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
