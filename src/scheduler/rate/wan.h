#pragma once

#include <limits>
#include <memory>

#include "scheduler/rate/controller_group.h"
#include "scheduler/rate/cubic.h"
#include "scheduler/rate/loss_ceiling.h"

namespace braid {

/// Rate control for paths that do not mark and that lose at random: WiFi, 4G, the Internet. Ours, put
/// together from published pieces:
/// - Alone at a bottleneck it keeps a small queue there, by FAST's window equation (Wei, Jin, Low, Hegde,
///   IEEE/ACM ToN 2006, eq. (3)): w <- (1 - g) w + g (w * baseRTT / RTT + alpha). The link never runs dry and
///   loss without a queue is not congestion. What it keeps there, alpha, is its rate times target(): it grows
///   with the rate to the power of 2/3, more slowly than the rate, so that several of them come to equal shares.
/// - A queue that does not go although this window gives way is somebody else's: then it competes as CUBIC
///   (RFC 9438), as Copa does with its own window (Arun and Balakrishnan, NSDI 2018, section 2.2), and looks
///   from time to time whether the other has gone.
/// - Loss that a higher rate causes where there is no queue is a policer: LossCeiling.
/// - The start doubles each round until a queue shows (RFC 9406 section 4.2), the rate stops growing (BBR) or
///   packets are lost in number.
/// - Every kDrainEvery it empties the queue for a moment to see the path's RTT; the link stays busy but for a
///   few packets.
class Wan final : public Controller {
 public:
  /// Standing queue aimed at, at kTargetRate bytes per second. At another rate r it is kTarget *
  /// cbrt(kTargetRate / r), and at least the time of two datagrams, within kLeastTarget..kMostTarget.
  static constexpr Duration kTarget = 5ms;
  static constexpr double kTargetRate = 50e6 / 8;
  static constexpr Duration kLeastTarget = 1ms;
  static constexpr Duration kMostTarget = 25ms;
  /// g of FAST's equation.
  static constexpr double kGain = 0.5;
  /// A round moves the window up by so much of itself at most.
  static constexpr double kMostGrowth = 0.25;
  /// After so many rounds with less than half the target queued the steps double each round (Copa section
  /// 2.1, velocity).
  static constexpr int kSteadyRounds = 3;
  /// The part of a loss rate up to which the window is widened for what is lost on its way.
  static constexpr double kMostLoss = 0.1;

  /// The RTT without a queue is looked for when it has not been seen for so long,
  static constexpr Duration kDrainEvery = 5s;
  /// by a window of this part of what the path holds.
  static constexpr double kDrain = 0.85;
  /// The RTT without a queue is forgotten when it has not been seen for so long, and in competition.
  static constexpr Duration kBaseLife = 10s;
  static constexpr Duration kBaseLifeCompeting = 60s;

  /// So many rounds in turn with so many times the target queued: look whose queue it is.
  static constexpr int kHighRounds = 2;
  static constexpr double kHighQueue = 1.5;
  /// and more than so many times the target of now, up to kHighMost seconds.
  static constexpr double kHighOwn = 1.2;
  static constexpr double kHighMost = 15e-3;
  /// The target for this is that of the highest rate of so long: who gives way gets a higher target, and
  /// would never notice.
  static constexpr Duration kRateLife = 10s;
  /// When this part of the target is left in so many looks in turn, somebody else's.
  static constexpr double kForeignLeft = 1.25;
  static constexpr int kForeignTests = 3;
  /// Less than so many packets are no queue.
  static constexpr double kPackets = 1.5;
  /// While competing, the next look is after so many rounds, at first and at most (they double);
  static constexpr int kLookRounds = 8;
  static constexpr int kMostLookRounds = 256;
  /// the other has gone when the queue goes down to this part of what it was.
  static constexpr double kGone = 0.25;
  /// While competing, loss is congestion when the queue is at least this part of the longest one seen.
  static constexpr double kFullQueue = 0.5;
  /// and a round lost more than so many times what it usually does.
  static constexpr double kUsualLoss = 3;

  /// RFC 9406 section 4.3: clamp(minRtt / 8, 4 ms, 16 ms) of queue end the start.
  static constexpr Duration kMinStartQueue = 4ms;
  static constexpr Duration kMaxStartQueue = 16ms;
  static constexpr int kStartSamples = 4;
  /// So many times that on average end it as well. Ours.
  static constexpr int kStartMeanQueue = 2;
  /// draft-cardwell-iccrg-bbr-congestion-control-00 section 4.3.2.2: three rounds without a quarter more.
  static constexpr double kStartGrowth = 1.25;
  static constexpr int kStartRounds = 3;
  /// Ours: or one round with so much loss.
  static constexpr double kStartLoss = 0.1;
  /// RFC 8511 section 3: what a CE mark leaves; once per round.
  static constexpr double kMarkBeta = 0.85;
  static constexpr uint64_t kMinDatagrams = 4;
  /// Pacing in windows per smoothed RTT, in the start and later.
  static constexpr double kStartPacing = 2;
  static constexpr double kPacing = 1.2;
  /// The window was used in a round when so much of it was in flight on average. One that was not only falls,
  /// to the initial one.
  static constexpr double kUsed = 0.8;

  explicit Wan(uint64_t datagram, uint64_t initial = kInitialWindow);

  /// So many subflows, this one included, share its bottleneck and are together what one is elsewhere: they
  /// take the target of one with their rate, each its part of what that keeps queued, and that part of
  /// CUBIC's share. At least 1.
  void setSharing(size_t subflows);

  void onSent(uint64_t bytes, uint64_t inFlight, Time now) override;
  void onAck(const AckSample& ack) override;
  void onLoss(const LossSample& loss) override;
  void onMarks(uint64_t marks, Time largestSentAt, Time now) override;
  void onSpuriousLoss(Time sentAt, Time now) override;
  void reset(Time now) override;
  uint64_t window() const override;
  double pacingRate() const override;

  enum class Mode : uint8_t { kStart, kModel, kCompete };
  Mode mode() const { return mode_; }
  /// RTT without a queue; 0 before the first sample.
  Duration baseRtt() const { return base_; }
  /// Standing queue of the last round.
  Duration queue() const { return queue_; }
  /// Standing queue aimed at now.
  Duration target() const;
  const LossCeiling& ceiling() const { return ceiling_; }

 private:
  enum class Drain : uint8_t { kNone, kLowered, kRestored };
  struct Round {
    Time began{};
    double acked = 0, lost = 0;  // bytes
    double inFlight = 0;         // bytes, summed over the ACKs
    int acks = 0;
    uint64_t packets = 0;            // lost
    Duration rtt = Duration::max();  // smallest sample
    Duration rtts{};                 // their sum
    int samples = 0;
    bool marked = false;
  };

  double targetAt(double rate) const;
  double packetTime() const;
  void noteRtt(const AckSample& ack);
  void noteRate(bool used);
  void endRound(const AckSample& ack);
  void judgeRound(const AckSample& ack);
  void startRound(bool used);
  void modelRound(bool used, Time now);
  double step(double queue, double target) const;
  void moveWindow(double queue, double target);
  void competeRound();
  void enterModel();
  void enterCompetition();
  void lower();
  double least() const { return static_cast<double>(kMinDatagrams * datagram_); }
  double initialWindow() const { return static_cast<double>(initial_ * datagram_); }
  double product() const { return rate_ * toSeconds(base_); }

  uint64_t datagram_;
  uint64_t initial_;
  double sharing_ = 1;
  Mode mode_ = Mode::kStart;
  double window_;
  Duration srtt_{};
  Duration base_{};
  Time baseSeen_;  // the last sample near it
  Duration queue_{};
  Duration longest_{};  // queue, while competing; decays
  double rate_ = 0;     // bytes per second delivered in the last rounds that used the window
  double arrived_ = 0;  // bytes per second in the last round
  double highest_ = 0;  // rate_ of late
  double loss_ = 0;     // share, of the last rounds

  uint64_t roundEnd_ = 0;  // bytes delivered at which the round ends
  Time lastSent_;
  bool resumed_ = false;  // after a pause, and nothing has been acknowledged since
  Round round_;
  double fullRate_ = 0;  // start
  int fullRounds_ = 0;
  int low_ = 0;      // rounds in turn with little queued
  int high_ = 0;     // rounds in turn with too much queued
  int foreign_ = 0;  // tests in turn that found somebody's queue
  Drain drain_ = Drain::kNone;
  double drainWindow_ = 0;
  Duration queueBefore_{};  // the look began with this queue
  int lookIn_ = 0;          // rounds until the next look
  int lookRounds_ = kLookRounds;
  Cubic cubic_;  // kCompete
  LossCeiling ceiling_;
};

}  // namespace braid
