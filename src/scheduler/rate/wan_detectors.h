#pragma once

#include <algorithm>
#include <cstdint>

#include "base/time.h"
#include "scheduler/rate/cubic.h"
#include "scheduler/rate/wan_model.h"

namespace braid {

/// Probes the path of `wan` without a queue of its own. The window is lowered to a fraction of what
/// the path holds, until no more than that is in flight; then it is restored. The next round
/// consists of packets that were sent while the window was low. If they saw a queue, it belongs to
/// another sender; if not, their RTT is the base RTT. The link stays busy, except for the time of a
/// few packets.
///
/// This probe is used instead of BBR's ProbeRTT (four packets for 200 ms every 10 s).
class RttProbe {
 public:
  /// A probe for the base RTT is due when no RTT sample was near the base RTT for kEvery.
  static constexpr Duration kEvery = 5s;
  /// The lowered window, as a fraction of what the path holds.
  static constexpr double kPart = 0.85;

  /// Begins a probe: lowers the window (bytes), but not below `least`.
  void begin(double window, const PathModel& path, double least);
  /// The window to use: `window`, or less while it is lowered.
  double limit(double window) const { return isLowered() ? std::min(window, window_) : window; }
  /// A round has ended with `inFlight` bytes in flight.
  void onRound(double inFlight) {
    if (inFlight <= window_) state_ = State::kRestored;
  }
  /// The sender paused. A probe whose window is still lowered is given up: it saw nothing.
  void onPause() {
    if (isLowered()) state_ = State::kNone;
  }
  /// Whether the round that has just ended holds the probe's answer. True once per probe.
  bool takeAnswer() {
    bool isAnswer = state_ == State::kRestored;
    if (isAnswer) state_ = State::kNone;
    return isAnswer;
  }

  /// The window is lowered now.
  bool isLowered() const { return state_ == State::kLowered; }
  /// A probe is under way: from begin() until takeAnswer() gave its answer or a pause ended it.
  bool isActive() const { return state_ != State::kNone; }

 private:
  enum class State : uint8_t { kNone, kLowered, kRestored };
  State state_ = State::kNone;
  double window_ = 0;
};

/// Finds out whether a standing queue is this sender's own or another sender's. When too much is
/// queued for kHighRounds rounds in a row, a probe is due (RttProbe). A queue that shrinks with
/// this sender's window was its own; a queue that stays in kProbes probes in a row belongs to
/// another sender. Copa (Arun and Balakrishnan, NSDI 2018, section 2.2) concludes that from a queue
/// that was not nearly empty within five RTTs.
class CompetitionDetector {
 public:
  /// Too much is queued when the queue exceeds three bounds. The first: kHighQueue times the target
  /// at the highest recent rate. (At the current rate, a sender that gives way would get an ever
  /// higher target, and would never notice.)
  static constexpr double kHighQueue = 1.5;
  /// The second bound: kHighOwn times the target at the current rate, or kHighMost seconds if that
  /// is less.
  static constexpr double kHighOwn = 1.2;
  static constexpr double kHighMost = 15e-3;
  /// The third bound: the time that kPackets datagrams take at the rate that arrives now, at most
  /// WanTarget::kMost. So much delay is not a queue: the base RTT was seen at a higher rate, when a
  /// packet took less time to send.
  static constexpr double kPackets = 1.5;
  /// After kHighRounds rounds in a row with too much queued, a probe is due.
  static constexpr int kHighRounds = 2;
  /// A probe found another sender's queue when the queue that is left exceeds kLeft times the
  /// target at the highest recent rate, and the third bound.
  static constexpr double kLeft = 1.25;
  /// Number of such probes in a row that make it certain.
  static constexpr int kProbes = 3;

  enum class Owner : uint8_t { kSelf, kDoubtful, kOther };

  /// `datagram`: bytes of a full one.
  explicit CompetitionDetector(uint64_t datagram) : datagram_(static_cast<double>(datagram)) {}

  /// A round that used its window has ended; `path` includes it. True: a probe is due.
  bool onRound(const PathModel& path, const WanTarget& target);
  /// A round did not use its window, or a probe begins: rounds with too much queued are counted
  /// from 0 again.
  void restart() { high_ = 0; }
  /// The round with a probe's answer has ended. kDoubtful: probe again.
  Owner onProbe(const PathModel& path, const WanTarget& target);

 private:
  double least(const PathModel& path) const;

  double datagram_;
  int high_ = 0;     // rounds in a row with too much queued
  int foreign_ = 0;  // probes in a row that found another sender's queue
};

/// How `wan` competes with another sender that keeps a queue: as CUBIC (RFC 9438), which takes
/// CUBIC's share of any buffer. Copa competes in the same situation with its own window (Arun and
/// Balakrishnan, NSDI 2018, section 2.2). From time to time a probe (RttProbe) checks whether the
/// other sender has gone. Loss counts only where it is congestion: when the queue is long and the
/// loss is higher than usual.
class WanCompetition {
 public:
  /// Rounds until the next probe: kProbeRounds at first, doubled each time, at most
  /// kMaxProbeRounds.
  static constexpr int kProbeRounds = 8;
  static constexpr int kMaxProbeRounds = 256;
  /// The other sender has gone when a probe leaves at most the fraction kGone of the queue.
  static constexpr double kGone = 0.25;
  /// Loss is congestion under two conditions. The first: the queue, by the smoothed RTT, is at
  /// least the fraction kFullQueue of the longest queue seen.
  static constexpr double kFullQueue = 0.5;
  /// The second: the round lost more than kUsualLoss times the packets that a window usually loses.
  /// Where more than half of PolicerDetector::kDoubtful is usual, it must lose one packet more.
  static constexpr double kUsualLoss = 3;
  /// The longest queue seen shrinks by 1/kLongestLife each round.
  static constexpr int kLongestLife = 64;

  WanCompetition(uint64_t datagram, uint64_t initial)
      : datagram_(datagram), initial_(initial), cubic_(datagram, initial) {}

  /// Takes the fraction `share` (0..1] of CUBIC's share.
  void setShare(double share);
  /// Begins to compete with this window, in bytes.
  void begin(double window, const PathModel& path);

  uint64_t window() const { return cubic_.window(); }
  double pacingRate() const { return cubic_.pacingRate(); }
  void onSent(uint64_t bytes, uint64_t inFlight, Time now) { cubic_.onSent(bytes, inFlight, now); }
  void onAck(const AckSample& ack) { cubic_.onAck(ack); }
  void onMarks(uint64_t marks, Time largestSentAt, Time now) {
    cubic_.onMarks(marks, largestSentAt, now);
  }
  void onSpuriousLoss(Time sentAt, Time now) { cubic_.onSpuriousLoss(sentAt, now); }
  /// `round`: the current round, this loss included; `window`: the subflow's window now, bytes.
  void onLoss(const LossSample& loss, const WanRound& round, const PathModel& path, double window);

  /// A round has ended with this queue.
  void onRound(Duration queue) {
    longest_ = std::max<Duration>(queue, longest_ - longest_ / kLongestLife);
  }
  /// A round without a probe has ended with this queue. True: a probe is due and is to begin now.
  bool isProbeDue(Duration queue);
  /// A probe left this queue. True: the other sender has gone.
  bool isOver(Duration queue) const { return !(toSeconds(queue) > kGone * toSeconds(before_)); }

 private:
  uint64_t datagram_;
  uint64_t initial_;
  double share_ = 1;
  Cubic cubic_;
  Duration longest_{};  // longest queue seen; shrinks
  Duration before_{};   // the queue with which the last probe began
  int probeIn_ = 0;     // rounds until the next probe
  int probeRounds_ = kProbeRounds;
};

/// Recognises a network that answers a rate above its limit with loss instead of a queue: a
/// policer, or a very shallow buffer. A trial tells such loss from random loss: the rate is bounded
/// by a ceiling a little below the rate that arrived. Loss that stays was not caused by this
/// sender's rate. The sampling of BBR's policer detection
/// (draft-cardwell-iccrg-bbr-congestion-control-00, "long-term bandwidth") was the model for
/// holding the rate and trying a higher one later.
class PolicerDetector {
 public:
  /// A round is suspicious when its loss exceeds the path's usual loss by more than kExcess. A
  /// trial begins after kRounds or more such rounds in a row whose excess adds up to kSuspicion.
  static constexpr double kExcess = 0.05;
  static constexpr int kRounds = 2;
  static constexpr double kSuspicion = 0.3;
  /// A suspicious round has at least kLeastLost lost packets.
  static constexpr uint64_t kLeastLost = 4;
  /// The ceiling, as a fraction of the rate that arrived. A ceiling that was raised and proved to
  /// hold is not set below what it was before.
  static constexpr double kMargin = 0.95;
  /// Loss is the path's own when two ceilings, the second by what arrived below the first, have not
  /// at least halved it. (The first one may be above the policer's rate, because of what the full
  /// bucket let through.) To decide that, a trial
  /// lasts at least kTrial rounds, and until kTrialLosses packets would be lost at the rate of loss
  /// that led to it. The chance that only half of them are lost at the same rate of loss is below 1
  /// in 1000.
  static constexpr int kTrial = 4;
  static constexpr double kTrialLosses = 40;
  /// A trial without a result is given up after kLongestTrial.
  static constexpr Duration kLongestTrial = 5s;
  /// If the loss exceeds the usual loss by more than kHoldExcess after the trial, or in any kTrial
  /// rounds later, and in at least kTrial - 1 rounds since, the ceiling is still too high (a
  /// policer's bucket hides that at first).
  static constexpr double kHoldExcess = 0.02;
  /// A usual loss of at least kDoubtful without a queue may be caused by this sender's rate all the
  /// same. A trial checks that from time to time: kFirstDoubt after a trial that did not confirm
  /// it, doubled each time, at most kLongestDoubt.
  static constexpr double kDoubtful = 0.01;
  static constexpr Duration kFirstDoubt = 10s;
  static constexpr Duration kLongestDoubt = 160s;
  /// A ceiling is raised by this factor each round, but not more often than every kRaiseEvery, to
  /// see whether it still holds.
  static constexpr double kRaise = 1.1;
  static constexpr Duration kRaiseEvery = 50ms;
  /// The ceiling holds when raising it brings a loss of more than kRaiseExcess above the usual one
  /// in kRounds rounds in a row, or of more than kMuchExcess in one. No trial follows then.
  static constexpr double kRaiseExcess = 0.03;
  static constexpr double kMuchExcess = 0.2;
  /// Time until a ceiling is raised: kFirstHold at first, or when raising it brought more than
  /// kRaise; 2 kFirstHold after it was lowered; doubled each time that the ceiling held, or
  /// returned within kReturn after raising it had removed it; at most kLongestHold.
  static constexpr Duration kFirstHold = 1s;
  static constexpr Duration kLongestHold = 16s;
  static constexpr Duration kReturn = 5s;
  /// A ceiling of more than kFree times the rate that arrives has no effect, and is removed.
  static constexpr double kFree = 2;
  /// A round is ignored when it sent less than the fraction kBusy of the ceiling and of the highest
  /// recent rate, whichever is lower. What a burst after a pause loses was not lost because of the
  /// rate, and what arrives of the burst is not what the path gives.
  static constexpr double kBusy = 0.75;

  struct Round {
    Time now;
    double acked = 0;      ///< bytes
    double lost = 0;       ///< bytes
    uint64_t packets = 0;  ///< lost packets
    double rate = 0;       ///< bytes per second that arrived
    double known = 0;      ///< bytes per second: highest recent rate, PathModel::highest()
    bool queue = false;    ///< packets queued: loss is then a buffer overflow, not a policer
    /// The sender was limited by its window or the ceiling, not by a lack of data.
    bool ofCeiling = false;
  };
  /// `datagram`: bytes of a packet.
  explicit PolicerDetector(uint64_t datagram) : datagram_(static_cast<double>(datagram)) {}
  void onRound(const Round& round);

  /// The ceiling in bytes per second; far above the rate of any path when there is none.
  double ceiling() const { return rate_; }
  /// There is a ceiling.
  bool hasCeiling() const { return rate_ < kUnbounded; }
  /// The path's usual loss, 0..1.
  double usualLoss() const { return floor_; }

 private:
  enum class State : uint8_t { kNone, kHold, kRaise };
  /// Totals of the rounds in a state.
  struct Seen {
    int rounds = 0;
    int lossy = 0;       // rounds that lost more than the ceiling allows
    double acked = 0;    // bytes
    double lost = 0;     // bytes
    double rates = 0;    // sum of the rates that arrived, bytes per second
    double highest = 0;  // of them

    void add(const Round& round, bool isLossy) {
      ++rounds;
      lossy += isLossy;
      acked += round.acked;
      lost += round.lost;
      rates += round.rate;
      highest = std::max(highest, round.rate);
    }
  };
  bool isBusy(const Round& round) const;
  void watch(const Round& round, double loss);
  void hold(double rate, double loss, Time now);
  bool isTold() const;
  void judge(const Round& round);
  void beginRaise(Time now);
  void raise(const Round& round, double loss);
  void lift();
  void blameThePath(Time now);

  double datagram_;
  State state_ = State::kNone;
  double rate_ = kUnbounded;
  double floor_ = 0;
  int suspicious_ = 0;    // suspicious rounds in a row
  double suspicion_ = 0;  // sum of their loss above the usual one
  double arrived_ = 0;    // highest rate that arrived in them, bytes per second
  double held_ = 0;       // the ceiling before it was raised
  double trigger_ = 0;    // loss that led to the ceiling
  bool judged_ = false;   // kHold: the trial showed that the rate caused the loss
  int rounds_ = 0;        // in this state
  Seen seen_;             // the rounds after the first kLag ones
  bool retried_ = false;  // the trial is the second one
  Time raisedAt_;         // kRaise: the last step
  Time returnsUntil_;     // a ceiling before this time is the one that raising removed
  Time until_;            // kHold: not raised before; kNone: no trial of the usual loss before
  Time begun_;            // kHold: when it began
  Duration interval_ = kFirstHold;
  Duration doubt_ = kFirstDoubt;  // until the usual loss is checked by a trial again
  static constexpr double kUnbounded = 1e18;
};

}  // namespace braid
