#pragma once

#include <cstdint>
#include <limits>

#include "scheduler/rate/controller.h"

namespace braid {

/// NewReno as QUIC has it (RFC 9002 section 7 and appendix B), with undo of reductions that were no
/// congestion.
///
/// Beside WindowController and not derived from it, because that one behaves otherwise: it starts again from
/// the initial window after idle time, asks more of a small window before it counts as used, takes what was
/// sent at the very moment of a reduction for later than it, and reduces for a mark and then for a loss of
/// the same window. The recovery experiments of docs/evaluation.md were measured with the rules here.
class NewReno final : public Controller {
 public:
  /// Window after a reduction, as a part of the window before (RFC 9002 appendix B.1).
  static constexpr double kLossReduction = 0.5;
  /// Pacing rate in windows per smoothed RTT (RFC 9002 section 7.7), and in slow start, which doubles per
  /// round.
  static constexpr double kPacingGain = 1.25;
  static constexpr double kSlowStartPacingGain = 2.0;
  /// Bytes for each datagram of the initial window at most, unless two datagrams are more (RFC 9002 section
  /// 7.2: ten datagrams, 14720 bytes).
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
  /// Before every packet: no recovery period has begun.
  static constexpr Time kNoRecovery = Time::min();
  static constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

  bool inRecovery(Time sentAt) const { return sentAt <= recoveryStart_; }
  bool isUtilised(const AckSample& ack) const;
  void reduce(Time now);

  uint64_t datagram_;
  uint64_t initial_;
  uint64_t window_;
  uint64_t threshold_ = kUnlimited;
  uint64_t growth_ = 0;  // congestion avoidance: datagram * acked bytes, less than a window
  Time recoveryStart_ = kNoRecovery;
  Duration srtt_{};

  /// What the last reduction took and what may give it back.
  struct Undo {
    bool possible = false;
    uint64_t window = 0;
    uint64_t threshold = 0;
    Time recoveryStart;  // of the period before
    uint64_t lost = 0;   // packets of this period that are lost as far as known
  };
  Undo undo_;
};

}  // namespace braid
