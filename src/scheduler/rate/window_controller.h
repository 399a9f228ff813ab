#pragma once

#include <cstdint>
#include <limits>

#include "scheduler/rate/controller.h"

namespace braid {

/// What the window-based controllers share: slow start, one reduction per window of data, no growth of a
/// window that is not used, restart after idle, undo of losses that were none, pacing. A derived class says
/// how the window grows in congestion avoidance and what is left of it after a mark or loss.
class WindowController : public Controller {
 public:
  /// Pacing rate in windows per smoothed RTT (RFC 9002 section 7.7), and in slow start, which doubles per
  /// round.
  static constexpr double kPacingGain = 1.25;
  static constexpr double kSlowStartPacingGain = 2;
  /// Datagrams. AMP section 3.2 (cwnd_min), RFC 9002 section 7.2.
  static constexpr uint64_t kMinimumWindow = 2;
  /// A sender that ran out of data uses its window when so many datagrams more would fill it. Ours.
  static constexpr uint64_t kSlackDatagrams = 3;
  /// Idle time after which the window starts again from the initial one, or four smoothed RTTs if those are
  /// longer (RFC 5681 section 4.1: one RTO, of which RFC 6298, rule (2.4), says one second at least).
  static constexpr Duration kIdle = 1s;
  static constexpr int kIdleRtts = 4;
  /// Slow start after idle goes up to this part of the old window (RFC 2861 section 3).
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
  /// RFC 9002 section 7.2: so many datagrams, of at most 14720 / 10 bytes each, two datagrams at least.
  uint64_t initialWindow() const;
  uint64_t minimumWindow() const { return minimum_ * datagram_; }
  /// Goes on in congestion avoidance with a window (bytes) and RTT that are known from elsewhere.
  void resume(double window, Duration srtt);

 protected:
  /// `datagram`: bytes of a full datagram; `initial`: datagrams of the initial window, `minimum` of the
  /// least.
  WindowController(uint64_t datagram, uint64_t initial, uint64_t minimum = kMinimumWindow);

  /// Congestion avoidance: `ack.bytes` of a window in use were acknowledged; the window may grow.
  virtual void grow(const AckSample& ack) = 0;
  /// The window after a mark: at most once per window of data.
  virtual double afterMark() const = 0;
  /// The window after a loss: at most once per window of data. RFC 5681: half.
  virtual double afterLoss() const { return window_ / 2; }
  /// Every ACK, before anything else.
  virtual void observe(const AckSample&) {}
  /// Before the window goes down, after it came back, and when nothing is known any more.
  virtual void onReduction() {}
  virtual void onUndo() {}
  virtual void onReset() {}
  /// The window has changed.
  virtual void onWindow() {}
  /// Time in which the window was not used.
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
  Time lossAt_ = kNone;  ///< what was sent before the last reduction for a loss is of its window
  Time markAt_ = kNone;  ///< the same for marks

  struct Undo {
    bool possible = false;
    double window = 0;
    double threshold = 0;
    Time lossAt = kNone;
    uint64_t lost = 0;  ///< packets of this window that are lost as far as known
  };
  Undo undo_;
};

}  // namespace braid
