#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "scheduler/rate/controller.h"

namespace braid {

/// NewReno as QUIC specifies it (RFC 9002 section 7 and appendix B). In addition, a reduction is
/// undone when its losses prove spurious.
///
/// NewReno is not derived from WindowController, because that class behaves differently: it starts
/// again from the initial window after idle time, asks more of a small window before it counts as
/// used, treats a packet sent at the very moment of a reduction as sent after it, and reduces for a
/// mark and then again for a loss of the same window. The recovery experiments of
/// evaluation/README.md were measured with the rules here.
class NewReno final : public Controller {
 public:
  /// Window after a reduction, as a part of the window before (RFC 9002 appendix B.1).
  static constexpr double kLossReduction = 0.5;
  /// Pacing rate in windows per smoothed RTT: in congestion avoidance (RFC 9002 section 7.7), and
  /// in slow start, in which the window doubles each round.
  static constexpr double kPacingGain = 1.25;
  static constexpr double kSlowStartPacingGain = 2.0;
  /// Bytes that a datagram of the initial window counts at most (RFC 9002 section 7.2: 14720 bytes
  /// for ten datagrams). The initial window is at least two full datagrams all the same.
  static constexpr uint64_t kInitialDatagram = 1472;

  /// `datagram`: bytes of a full datagram; `initial`: datagrams of the initial window, at least 2.
  explicit NewReno(uint64_t datagram, uint64_t initial = kInitialWindow);

  void onSent(uint64_t, uint64_t, Time) override {}
  void onAck(const AckSample& ack) override;
  void onLoss(const LossSample& loss) override;
  void onMarks(uint64_t marks, Time largestSentAt, Time now) override;
  void onSpuriousLoss(Time sentAt, Time now) override;
  void reset(Time now) override;
  uint64_t window() const override { return window_; }
  double pacingRate() const override;

  bool inSlowStart() const { return window_ < threshold_; }
  uint64_t initialWindow() const;
  uint64_t minimumWindow() const { return 2 * datagram_; }

 private:
  /// In congestion avoidance, a sender that ran out of data counts as using its window when at most
  /// kSlackDatagrams more datagrams would fill it: pacing and ACK clocking always leave some of it
  /// open. RFC 9002 section 7.8 leaves the test to the sender.
  static constexpr uint64_t kSlackDatagrams = 3;

  /// A time before every packet: no recovery period has begun.
  static constexpr Time kNoRecovery = Time::min();
  static constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

  bool inRecovery(Time sentAt) const { return sentAt <= recoveryStart_; }
  bool isUtilised(const AckSample& ack) const;
  void reduce(Time now);

  uint64_t datagram_;
  uint64_t initial_;
  uint64_t window_;
  uint64_t threshold_ = kUnlimited;
  uint64_t growth_ = 0;  // congestion avoidance: datagram * acked bytes that have not grown it yet
  Time recoveryStart_ = kNoRecovery;
  Duration srtt_{};

  /// The state before the last reduction, and whether it may be restored.
  struct Undo {
    bool possible = false;
    uint64_t window = 0;
    uint64_t threshold = 0;
    Time recoveryStart;  // of the recovery period before
    uint64_t lost = 0;   // packets of this recovery period that still count as lost
  };
  Undo undo_;
};

inline NewReno::NewReno(uint64_t datagram, uint64_t initial)
    : datagram_(datagram), initial_(initial), window_(initialWindow()) {}

inline uint64_t NewReno::initialWindow() const {
  return std::min(initial_ * datagram_, std::max(initial_ * kInitialDatagram, 2 * datagram_));
}

inline void NewReno::onAck(const AckSample& ack) {
  if (ack.srtt > Duration{}) srtt_ = ack.srtt;
  if (inRecovery(ack.largestSentAt) || !isUtilised(ack)) return;
  if (inSlowStart()) {
    window_ += ack.bytes;
    return;
  }
  growth_ += datagram_ * ack.bytes;
  uint64_t step = growth_ / window_;
  growth_ -= step * window_;
  window_ += step;
}

inline void NewReno::onLoss(const LossSample& loss) {
  if (!inRecovery(loss.largestSentAt)) {
    reduce(loss.now);
    undo_.lost = 0;
    undo_.possible = true;
  }
  if (loss.packets == 0) undo_.possible = false;
  if (loss.largestSentAt > undo_.recoveryStart) undo_.lost += loss.packets;
  if (!loss.persistent) return;
  window_ = minimumWindow();
  growth_ = 0;
  recoveryStart_ = kNoRecovery;
  undo_.possible = false;
}

inline void NewReno::onMarks(uint64_t marks, Time largestSentAt, Time now) {
  if (marks == 0) return;
  if (!inRecovery(largestSentAt)) reduce(now);
  undo_.possible = false;
}

inline void NewReno::onSpuriousLoss(Time sentAt, Time) {
  bool ofLastReduction = sentAt <= recoveryStart_ && sentAt > undo_.recoveryStart;
  if (!undo_.possible || !ofLastReduction || undo_.lost == 0 || --undo_.lost > 0) return;
  window_ = std::max(window_, undo_.window);
  threshold_ = undo_.threshold;
  recoveryStart_ = undo_.recoveryStart;
  undo_.possible = false;
}

inline void NewReno::reset(Time) {
  *this = NewReno(datagram_, initial_);
}

inline double NewReno::pacingRate() const {
  if (srtt_ <= Duration{}) return std::numeric_limits<double>::infinity();
  double gain = inSlowStart() ? kSlowStartPacingGain : kPacingGain;
  return gain * static_cast<double>(window_) / toSeconds(srtt_);
}

inline bool NewReno::isUtilised(const AckSample& ack) const {
  if (inSlowStart() || !ack.appLimited) return 2 * ack.inFlight >= window_;
  return ack.inFlight + kSlackDatagrams * datagram_ >= window_;
}

inline void NewReno::reduce(Time now) {
  undo_.window = window_;
  undo_.threshold = threshold_;
  undo_.recoveryStart = recoveryStart_;
  recoveryStart_ = now;
  threshold_ = static_cast<uint64_t>(static_cast<double>(window_) * kLossReduction);
  window_ = std::max(threshold_, minimumWindow());
  growth_ = 0;
}

}  // namespace braid
