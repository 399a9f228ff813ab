#pragma once

#include <array>

#include "scheduler/rate/controller.h"

namespace braid {

/// Model-based control after BBR (draft-cardwell-iccrg-bbr-congestion-control-00): send at the measured
/// bottleneck rate, keep about one bandwidth-delay product in flight, probe for more in turns. Random loss
/// does not slow it down; loss with a standing queue, much loss, and ECN marks bound what is in flight.
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
  /// Sections 2, 4.1.1.5: rounds that the bandwidth maximum looks back.
  static constexpr size_t kBandwidthRounds = 10;
  /// Section 4.3.2.2: the pipe is full when three rounds have not brought a quarter more.
  static constexpr double kFullGrowth = 1.25;
  static constexpr int kFullRounds = 3;
  /// RFC 9406 sections 4.2, 4.3: the start also ends when a round's smallest RTT shows a queue. (A sender
  /// that never fills the window itself would never see the plateau.)
  static constexpr Duration kMinQueue = 4ms;
  static constexpr Duration kMaxQueue = 16ms;
  static constexpr int kRoundSamples = 8;
  /// Section 4.2.3.3.
  static constexpr uint64_t kMinDatagrams = 4;
  /// Ours: loss of a round that is congestion when RTTs show a queue (draft-ietf-ccwg-bbr-04 section 2.7 has
  /// 2 %), and without one (a policer).
  static constexpr double kQueueLoss = 0.02;
  static constexpr double kPolicerLoss = 0.2;
  /// Ours: the smoothed RTT above the minimum that counts as a queue.
  static constexpr double kQueueRtt = 1.25;
  /// draft-ietf-ccwg-bbr-04 section 2.7 (Beta is 0.7 there): what is left of the bound on the data in flight.
  static constexpr double kBackoff = 0.85;
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
  double bandwidth() const { return bandwidth_; }

 private:
  static constexpr double kUnbounded = 1e18;
  double bdp() const { return bandwidth_ * toSeconds(minRtt_); }
  uint64_t initialWindow() const { return initial_ * datagram_; }
  void onRound();
  void updateBandwidth(const AckSample& ack);
  void advance(const AckSample& ack);
  void beginTurn(size_t turn, Time now);
  void bound();

  uint64_t datagram_;
  uint64_t initial_;
  State state_ = State::kStartup;
  double gain_ = kStartupGain;
  size_t turn_ = 0;
  Time turnBegan_;
  double window_;
  Duration minRtt_{};
  Duration srtt_{};

  double bandwidth_ = 0;
  std::array<double, kBandwidthRounds> maxima_{};  ///< by round
  uint64_t round_ = 0;
  uint64_t roundEnd_ = 0;  ///< bytes delivered at which the round ends
  bool roundLimited_ = false;
  double fullBandwidth_ = 0;
  int fullRounds_ = 0;

  double lostInRound_ = 0;
  double ackedInRound_ = 0;
  bool markedInRound_ = false;
  Duration roundRtt_ = Duration::max();  ///< smallest sample of the round
  int roundSamples_ = 0;
  double bound_ = kUnbounded;  ///< of bytes in flight, after congestion
};

}  // namespace braid
