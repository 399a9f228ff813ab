#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/time.h"
#include "scheduler/rate/controller.h"

namespace braid {

/// BBR's estimate of the bottleneck's rate: the highest delivery rate of the last kRounds rounds
/// (draft-cardwell-iccrg-bbr-congestion-control-00 sections 2, 4.1.1).
class BbrBandwidth {
 public:
  /// Section 4.1.1.5: rounds that the maximum looks back.
  static constexpr size_t kRounds = 10;

  /// Bytes per second; 0 before the first sample.
  double get() const { return bandwidth_; }

  /// The next ACK is the first of a round.
  void beginRound() { maxima_[++round_ % kRounds] = 0; }
  /// A rate that was limited by a lack of data is only a lower bound of the path's rate (section
  /// 4.1.1.4).
  void onAck(const AckSample& ack) {
    if (ack.deliveryRate <= 0) return;
    double& maximum = maxima_[round_ % kRounds];
    if (ack.appLimited && ack.deliveryRate < bandwidth_) {
      // Nothing new was learned, so the old maximum must not age.
      maximum = std::max(maximum, bandwidth_);
      return;
    }
    maximum = std::max(maximum, ack.deliveryRate);
    bandwidth_ = *std::max_element(maxima_.begin(), maxima_.end());
  }

 private:
  double bandwidth_ = 0;
  std::array<double, kRounds> maxima_{};  // by round
  uint64_t round_ = 0;
};

/// An upper bound of what BBR may have in flight after congestion. The first draft of BBR has no
/// such bound, draft-ietf-ccwg-bbr has one. A round was congested when CE marks came, or when more
/// than two datagrams and too large a share of the bytes were lost. So random loss does not slow a
/// lossy path, but a full buffer does. Each congested round lowers the bound, each probe raises it.
class BbrBound {
 public:
  /// Share of a round's bytes above which loss is congestion: when the RTT shows a queue
  /// (draft-ietf-ccwg-bbr-04 section 2.7 has 2 %), and when it shows none (a policer).
  static constexpr double kQueueLoss = 0.02;
  static constexpr double kPolicerLoss = 0.2;
  /// A smoothed RTT above kQueueRtt times the minimum RTT shows a queue.
  static constexpr double kQueueRtt = 1.25;
  /// A congested round multiplies what was allowed in flight by kBackoff (Beta in
  /// draft-ietf-ccwg-bbr-04 section 2.7, 0.7 there).
  static constexpr double kBackoff = 0.85;

  /// `datagram`: bytes of a full datagram.
  explicit BbrBound(uint64_t datagram) : datagram_(static_cast<double>(datagram)) {}

  /// The bound in bytes; far above every window when there is none.
  double get() const { return bound_; }
  /// Packets of this round were lost.
  bool hasLoss() const { return lost_ > 0; }

  void onAck(uint64_t bytes) { acked_ += static_cast<double>(bytes); }
  void onLoss(uint64_t bytes) { lost_ += static_cast<double>(bytes); }
  void onMarks(uint64_t marks) { marked_ |= marks > 0; }
  /// A round has ended. True: it was congested, and the bound is now below `window`, but not below
  /// `least` (both in bytes).
  bool onRound(Duration srtt, Duration minRtt, double window, double least);
  /// A probe for more bandwidth begins: multiplies the bound by `gain`.
  void raise(double gain) {
    if (bound_ < kNone) bound_ *= gain;
  }
  /// Removes the bound if it is above `above` bytes, where it has no effect.
  void release(double above) {
    if (bound_ > above) bound_ = kNone;
  }

 private:
  static constexpr double kNone = 1e18;

  double datagram_;
  double bound_ = kNone;
  // Of the current round, bytes:
  double lost_ = 0;
  double acked_ = 0;
  bool marked_ = false;
};

/// Finds the end of BBR's start. It ends when the rate did not grow by a quarter in three rounds
/// that were not limited by a lack of data (FullPipe), or when the smallest RTT of a round shows a
/// queue (RFC 9406 section 4.2). The second sign is needed because a sender that never fills its
/// window would never see the rate level off.
class BbrStart {
 public:
  /// RFC 9406 section 4.3: number of samples that a round needs for its smallest RTT to count.
  static constexpr int kSamples = 8;

  void onAck(const AckSample& ack) {
    if (ack.deliveryRate > 0) limited_ |= ack.appLimited;
    if (ack.rtt <= Duration{}) return;
    rtt_ = std::min(rtt_, ack.rtt);
    ++samples_;
  }
  /// A round has ended. True: the pipe is full.
  bool onRound(double bandwidth, Duration minRtt) {
    if (!limited_) pipe_.onRound(bandwidth);
    bool queued = samples_ >= kSamples && rtt_ >= minRtt + FullPipe::queueOf(minRtt);
    rtt_ = Duration::max();
    samples_ = 0;
    limited_ = false;
    return queued || pipe_.isFull();
  }

 private:
  FullPipe pipe_;
  // Of the current round:
  Duration rtt_ = Duration::max();  // smallest sample
  int samples_ = 0;
  bool limited_ = false;  // a lack of data limited its rate
};

/// Model-based congestion control after BBR (draft-cardwell-iccrg-bbr-congestion-control-00): it
/// sends at the measured bottleneck rate (BbrBandwidth), keeps about one bandwidth-delay product in
/// flight, and probes for more in a cycle. The start doubles the rate until the pipe is full
/// (BbrStart). Random loss does not slow it down; loss with a standing queue, much loss, and ECN
/// marks bound what is in flight (BbrBound). docs/fidelity.md lists the deviations from the draft.
class Bbr final : public Controller {
 public:
  /// Sections 4.3.2.1, 4.3.3: a pacing gain of 2/ln 2 doubles the rate each round; its inverse
  /// drains the queue that the start built.
  static constexpr double kStartupGain = 2.885;
  static constexpr double kDrainGain = 1 / kStartupGain;
  /// Sections 4.2.3.2, 4.3.4.1: window in bandwidth-delay products in State::kProbe.
  static constexpr double kWindowGain = 2;
  /// Section 4.3.4.1: the cycle of pacing gains. A turn with one gain lasts about one minimum RTT.
  static constexpr std::array<double, 8> kGains{1.25, 0.75, 1, 1, 1, 1, 1, 1};
  /// draft-ietf-ccwg-bbr-04 section 2.4: pace a little below the estimate, which is a maximum.
  static constexpr double kPacingMargin = 0.99;
  /// The turn with the gain below 1 lasts until the queue is gone, at most kMaxDrain minimum RTTs:
  /// other senders may keep the queue full.
  static constexpr int kMaxDrain = 4;
  /// Smallest window in datagrams (section 4.2.3.3).
  static constexpr uint64_t kMinDatagrams = 4;
  /// ACKs may come in clumps that are kAckClump apart; the window is larger by what the path gives
  /// in that time.
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
