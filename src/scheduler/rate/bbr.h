#pragma once

#include <array>

#include "scheduler/rate/bbr_bandwidth.h"
#include "scheduler/rate/bbr_bound.h"
#include "scheduler/rate/bbr_start.h"

namespace braid {

/// Model-based control after BBR (draft-cardwell-iccrg-bbr-congestion-control-00): send at the measured
/// bottleneck rate (bbr_bandwidth.h), keep about one bandwidth-delay product in flight, probe for more in
/// turns. The start doubles the rate until the pipe is full (bbr_start.h). Random loss does not slow it down;
/// loss with a standing queue, much loss, and ECN marks bound what is in flight (bbr_bound.h).
/// docs/fidelity.md lists the departures.
class Bbr final : public Controller {
 public:
  /// Sections 4.3.2.1, 4.3.3: 2/ln 2 lets the rate double each round; its inverse drains what that queued.
  static constexpr double kStartupGain = 2.885;
  static constexpr double kDrainGain = 1 / kStartupGain;
  /// Sections 4.2.3.2, 4.3.4.1: window in bandwidth-delay products while probing.
  static constexpr double kWindowGain = 2;
  /// Section 4.3.4.1: the turns of pacing gain, each about one minimum RTT long.
  static constexpr std::array<double, 8> kGains{1.25, 0.75, 1, 1, 1, 1, 1, 1};
  /// draft-ietf-ccwg-bbr-04 section 2.4: pace a little below the estimate, which is a maximum.
  static constexpr double kPacingMargin = 0.99;
  /// Ours: the turn that drains lasts until the queue is gone, at most so many minimum RTTs (others may keep
  /// it full).
  static constexpr int kMaxDrain = 4;
  /// Section 4.2.3.3.
  static constexpr uint64_t kMinDatagrams = 4;
  /// Ours: ACKs come in clumps of so long; the window covers the wait.
  static constexpr Duration kAckClump = 10ms;

  /// `datagram`: bytes of a full datagram; `initial`: datagrams of the initial window.
  explicit Bbr(uint64_t datagram, uint64_t initial = kInitialWindow);

  void onSent(uint64_t, uint64_t, Time) override {}
  void onAck(const AckSample& ack) override;
  void onLoss(const LossSample& loss) override;
  void onMarks(uint64_t marks, Time largestSentAt, Time now) override;
  void onSpuriousLoss(Time, Time) override {}
  void reset(Time now) override;
  uint64_t window() const override;
  double pacingRate() const override;

  enum class State : uint8_t { kStartup, kDrain, kProbe };
  State state() const { return state_; }
  /// Bottleneck bandwidth in bytes per second; 0 before the first sample.
  double bandwidth() const { return bandwidth_.get(); }

 private:
  double bdp() const { return bandwidth() * toSeconds(minRtt_); }
  double initialWindow() const { return static_cast<double>(initial_ * datagram_); }
  double least() const { return static_cast<double>(kMinDatagrams * datagram_); }
  bool onRound();
  void advance(const AckSample& ack, bool full);
  void beginTurn(size_t turn, Time now);

  uint64_t datagram_;
  uint64_t initial_;
  State state_ = State::kStartup;
  double gain_ = kStartupGain;  ///< of pacing
  size_t turn_ = 0;
  Time turnBegan_;
  double window_;
  Duration minRtt_{};
  Duration srtt_{};
  uint64_t roundEnd_ = 0;  ///< bytes delivered at which the round ends
  BbrBandwidth bandwidth_;
  BbrStart start_;
  BbrBound bound_;
};

}  // namespace braid
