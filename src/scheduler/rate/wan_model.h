#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/time.h"
#include "scheduler/rate/controller.h"

namespace braid {

/// Totals of one round (about a round trip) of `wan`.
struct WanRound {
  Time began{};
  double acked = 0;      ///< bytes
  double lost = 0;       ///< bytes
  uint64_t packets = 0;  ///< lost packets
  double inFlight = 0;   ///< sum over the ACKs: bytes in flight before the ACK
  int acks = 0;
  Duration rtt = Duration::max();  ///< smallest sample
  Duration rtts{};                 ///< sum of the samples
  int samples = 0;
  bool marked = false;  ///< a CE mark was counted
  /// The round follows a pause, and the burst after the pause filled the window.
  bool tooSmall = false;

  double sent() const { return lost + acked; }
  /// Needs at least one sample.
  Duration meanRtt() const { return rtts / samples; }
  /// True when on average at least the fraction `part` of `window` (bytes) was in flight.
  bool isUsed(double window, double part) const { return inFlight >= part * window * acks; }
};

/// Divides a subflow's time into rounds. A round ends with the ACK of a packet that was sent after
/// the round began, if it has an RTT sample by then.
class WanRounds {
 public:
  const WanRound& current() const { return round_; }

  /// A packet was sent; `inFlight` includes it. When nothing else is in flight, the round begins
  /// again, because time in which nothing was sent does not count. Returns the time since the
  /// previous packet in that case, else 0.
  Duration onSent(uint64_t bytes, uint64_t inFlight, Time now) {
    Time before = std::exchange(lastSent_, now);
    if (inFlight > bytes) return {};
    round_ = {};
    round_.began = now;
    return now - before;
  }
  /// The burst after a pause has filled the window, before any of it was acknowledged.
  void onFull() { filled_ = true; }
  /// The sender continues after a pause. The first ACK then ends a round of which almost nothing
  /// has arrived.
  void onPause() {
    resumed_ = true;
    filled_ = false;
  }

  void onAck(const AckSample& ack) {
    if (ack.rtt > Duration{}) {
      round_.rtt = std::min(round_.rtt, ack.rtt);
      round_.rtts += ack.rtt;
      ++round_.samples;
    }
    round_.acked += static_cast<double>(ack.bytes);
    round_.inFlight += static_cast<double>(ack.inFlight);
    ++round_.acks;
  }
  void onLoss(const LossSample& loss) {
    round_.lost += static_cast<double>(loss.bytes);
    round_.packets += loss.packets;
  }
  void onMarks(uint64_t marks) { round_.marked |= marks > 0; }

  bool isEndedBy(const AckSample& ack) const {
    return ack.priorDelivered >= end_ && round_.samples > 0;
  }
  /// The current round says something about the path.
  bool isMeaningful() const { return !resumed_; }
  /// The next round begins with this ACK.
  void begin(const AckSample& ack) {
    end_ = ack.delivered;
    round_ = {};
    round_.tooSmall = std::exchange(resumed_, false) && filled_;
    round_.began = ack.now;
  }

 private:
  WanRound round_;
  uint64_t end_ = 0;  // bytes delivered at which the round ends
  Time lastSent_;
  bool resumed_ = false;  // after a pause, and nothing has been acknowledged since
  bool filled_ = false;   // the window was full then
};

/// What `wan` knows about its path: the RTT without a queue (base RTT), the standing queue, the
/// rate, and the usual loss.
class PathModel {
 public:
  /// The base RTT is forgotten when no sample has come near it for kBaseLife. While `wan` competes,
  /// that time is kBaseLifeCompeting, because another sender's queue hides the base RTT.
  static constexpr Duration kBaseLife = 10s;
  static constexpr Duration kBaseLifeCompeting = 60s;
  /// A sample is near the base RTT when it exceeds it by at most 1/kNear.
  static constexpr int kNear = 64;
  /// The highest recent rate is forgotten within about kRateLife: a round that lasts t reduces it
  /// by the fraction t / kRateLife.
  static constexpr Duration kRateLife = 10s;
  /// Weight of a round in the usual loss.
  static constexpr double kLossGain = 1.0 / 8;

  /// What the bytes that arrive in a round say about the path's rate: nothing (the window was
  /// lowered by a probe), a lower bound (the sender did not use its window, or doubles it), or the
  /// rate that the path gives.
  enum class Rate : uint8_t { kNothing, kAtLeast, kAll };

  /// The RTT sample of an ACK without the time for which the peer held the ACK back, as in RFC 9002
  /// section 5.3: the delay stays in the first sample, and where the result would be below the base
  /// RTT. 0: the ACK has no sample.
  Duration rttOf(const AckSample& ack) const {
    bool isSure = base_ > Duration{} && ack.rtt >= base_ + ack.delay;
    return isSure ? ack.rtt - ack.delay : ack.rtt;
  }
  void onAck(const AckSample& ack, bool competing);
  /// `round` has ended; it has at least one RTT sample.
  void onRound(const WanRound& round, Time now, Rate says);
  /// A probe for the base RTT begins. The base RTT counts as seen at `at`, so that no other probe
  /// follows at once.
  void onProbe(Time at) { baseSeen_ = std::max(baseSeen_, at); }

  /// Smoothed RTT; 0 before the first ACK.
  Duration srtt() const { return srtt_; }
  /// RTT without a queue; 0 before the first sample.
  Duration base() const { return base_; }
  /// When a sample was last near the base RTT, or a probe for it began.
  Time baseSeen() const { return baseSeen_; }
  /// Standing queue of the last round: its smallest RTT minus the base RTT.
  Duration queue() const { return queue_; }
  /// Bytes per second that the path gives; 0 before the first round. A round that shows the path's
  /// rate moves it halfway to that rate; a round that shows a lower bound raises it to the bound.
  double rate() const { return rate_; }
  /// The highest recent rate(), see kRateLife.
  double highest() const { return highest_; }
  /// Bytes per second that arrived in the last round.
  double arrived() const { return arrived_; }
  /// The usual loss, 0..1: the share of the bytes sent that were lost, averaged over the last
  /// rounds.
  double loss() const { return loss_; }
  /// Bytes that the path holds without a queue at rate() (bandwidth-delay product).
  double product() const { return rate_ * toSeconds(base_); }

 private:
  Duration srtt_{};
  Duration base_{};
  Time baseSeen_;
  Duration queue_{};
  double rate_ = 0;
  double highest_ = 0;
  double arrived_ = 0;
  double loss_ = 0;
};

/// The window of `wan` where no other sender keeps a queue. It follows FAST's equation (Wei, Jin,
/// Low, Hegde, IEEE/ACM ToN 2006, eq. (3)), once per round:
///
///     w <- (1 - g) w + g (w * baseRTT / RTT + alpha)
///
/// RTT is the smallest sample of the round, which jitter and clumps of ACKs do not change. alpha is
/// what is to be queued: the path's rate times the target (WanTarget), plus what is lost on the
/// way. So the link never runs dry, and loss does not count as congestion.
class FastWindow {
 public:
  /// g, which FAST leaves open.
  static constexpr double kGain = 0.5;
  /// A round increases the window by at most this fraction of it. (In FAST it at most doubles.)
  static constexpr double kMostGrowth = 0.25;
  /// After kSteadyRounds rounds in a row with less than half the target queued, the steps up double
  /// each round (Copa, Arun and Balakrishnan, NSDI 2018, section 2.1: velocity).
  static constexpr int kSteadyRounds = 3;
  /// While less than the target is queued, alpha includes the usual loss of a window, up to this
  /// fraction of the window.
  static constexpr double kMostLoss = 0.1;
  /// A round with CE marks multiplies the window by kMarkBeta (RFC 8511 section 3).
  static constexpr double kMarkBeta = 0.85;
  /// A rate is limited by its pacing alone with a window of kRateWindow times what it has in flight
  /// during the base RTT, and the initial window for ACKs that come in clumps.
  static constexpr double kRateWindow = 1.25;
  /// The smallest window, datagrams.
  static constexpr uint64_t kMinDatagrams = 4;

  /// `datagram`: bytes of a full one; `initial`: datagrams of the initial window.
  FastWindow(uint64_t datagram, uint64_t initial)
      : least_(static_cast<double>(kMinDatagrams * datagram)),
        initial_(static_cast<double>(initial * datagram)) {}

  /// The smallest window, bytes.
  double least() const { return least_; }

  /// Bytes with which `rate` (bytes per second) is limited by its pacing alone.
  double forRate(double rate, const PathModel& path) const {
    return kRateWindow * rate * toSeconds(path.base()) + initial_;
  }

  // Each of the following returns the new window. `window`: the window before; both in bytes.
  // `target`: the standing queue to aim at, seconds.
  /// The model begins. The window is what the path holds plus the target's queue, or the initial
  /// window if that is more, but at most `window`.
  double begin(double window, const PathModel& path, double target);
  /// A round that used the window has ended; `path` includes it.
  double onRound(double window, const PathModel& path, double target);
  /// A round that on average did not use the window has ended. When the burst after a pause filled
  /// the window all the same and left less than half the target queued, the window was too small
  /// for the burst, and grows. Otherwise the window may only shrink, by the equation with the mean
  /// RTT, but not below the initial window.
  double onUnusedRound(double window, const WanRound& round, const PathModel& path, double target);
  /// A round with CE marks has ended.
  double onMarkedRound(double window);

 private:
  double step(double window, double queue, const PathModel& path, double target) const;

  double least_;
  double initial_;
  int low_ = 0;  // rounds in a row with less than half the target queued
};

/// The start of `wan`: the window doubles each round trip until a round
/// - shows a queue, as in RFC 9406 section 4.2, but with the RTT compared to the path's base RTT,
///   with fewer samples, and with the mean RTT as a second sign; or
/// - is the third in a row in which the rate did not grow by a quarter (FullPipe); or
/// - lost many packets (kLoss) although it did not bring a quarter more, so the loss comes with the
///   rate and is not random; or
/// - was CE-marked.
///
/// No conservative slow start follows (RFC 9406 section 4.2, CSS): the model corrects an early end
/// within a few rounds.
class WanStart {
 public:
  /// A round shows a queue only with at least kSamples RTT samples; RFC 9406 section 4.3 has 8.
  static constexpr int kSamples = 4;
  /// The start also ends when the mean RTT shows kMeanQueue times the queue that ends it.
  static constexpr int kMeanQueue = 2;
  /// Many packets are lost in a round that lost more than the fraction kLoss of its bytes and at
  /// least PolicerDetector::kLeastLost packets.
  static constexpr double kLoss = 0.1;

  /// Bytes that an ACK adds to `window`: what it acknowledges, if at least half the window was in
  /// flight, else 0.
  static double growth(const AckSample& ack, double window) {
    return static_cast<double>(ack.inFlight) >= window / 2 ? static_cast<double>(ack.bytes) : 0;
  }
  /// A round has ended; `path` includes it. `used`: it used its window. True: the start is over.
  bool onRound(const WanRound& round, const PathModel& path, bool used);

 private:
  FullPipe pipe_;
};

/// The standing queue, in time, that `wan` aims at. It falls with the cube root of the rate, so the
/// bytes kept queued grow with the rate to the power of 2/3. Because they grow more slowly than the
/// rate, several senders come to equal shares. A fixed number of packets, as in FAST, would be
/// seconds of queue at 1 Mbit/s and nothing at 1 Gbit/s.
class WanTarget {
 public:
  /// The target is kQueue at kRate bytes per second. At another rate r it is kQueue * cbrt(kRate /
  /// r), at least the time that two datagrams take, and always within kLeast..kMost.
  static constexpr Duration kQueue = 5ms;
  static constexpr double kRate = 50e6 / 8;
  static constexpr Duration kLeast = 1ms;
  static constexpr Duration kMost = 25ms;

  /// `datagram`: bytes of a full one.
  explicit WanTarget(uint64_t datagram) : datagram_(static_cast<double>(datagram)) {}

  /// Says that `subflows` subflows, at least 1, share the bottleneck. Each then has the target of a
  /// single subflow with `subflows` times its rate.
  void setSharing(size_t subflows) { sharing_ = static_cast<double>(subflows); }

  /// The target in seconds at `rate`, above 0, in bytes per second.
  double secondsAt(double rate) const;
  /// The target at `rate` as a time, rounded down; kMost when the rate is not known (0).
  Duration at(double rate) const { return rate > 0 ? fromSeconds(secondsAt(rate)) : kMost; }

 private:
  double datagram_;
  double sharing_ = 1;
};

}  // namespace braid
