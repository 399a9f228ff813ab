#pragma once

#include <cstdint>

#include "base/time.h"

namespace braid {

/// Recognises a network that answers a rate above its limit with loss instead of a queue (a policer, a very
/// shallow buffer), and tells it from random loss by trying: the rate goes a little below what arrived; loss
/// that stays was not of our making. Ours; the sampling of BBR's policer detection
/// (draft-cardwell-iccrg-bbr-congestion-control-00, "long-term bandwidth") was the model for holding the rate
/// and trying again later.
class LossCeiling {
 public:
  /// Loss of a round, above the path's usual one, that makes it suspicious, and so many such rounds in turn.
  static constexpr double kExcess = 0.05;
  static constexpr int kRounds = 2;
  /// Of them at least so many lost packets.
  static constexpr uint64_t kLeastLost = 4;
  /// The ceiling, in parts of what arrived; after a trial not below what it was before.
  static constexpr double kMargin = 0.95;
  /// Loss that has not halved below the ceiling is the path's own. To tell, a trial takes so many rounds at
  /// least, and so many packets that this many would be lost: half of them by chance is rarer than 1 in 1000.
  static constexpr int kTrial = 4;
  static constexpr double kTrialLosses = 40;
  /// A trial that has not told after so long is given up.
  static constexpr Duration kLongestTrial = 5s;
  /// Loss that is so much above the usual one then, or in any kTrial rounds later, is still too high (buckets
  /// hide that at first).
  static constexpr double kHoldExcess = 0.02;
  /// Usual loss of so much without a queue may be of our making all the same: it is tried now and then, less
  /// often each time that it was not.
  static constexpr double kDoubtful = 0.01;
  static constexpr Duration kFirstDoubt = 10s;
  static constexpr Duration kLongestDoubt = 160s;
  /// A ceiling is raised by so much a round to see whether it still holds,
  static constexpr double kRaise = 1.1;
  /// and holds when that costs so much more loss than below it.
  static constexpr double kRaiseExcess = 0.03;
  /// Pause before a ceiling is tried: at first, and at most (it doubles each time that it held).
  static constexpr Duration kFirstHold = 2s;
  static constexpr Duration kLongestHold = 16s;
  /// A ceiling so many times above what arrives binds nobody.
  static constexpr double kFree = 2;
  /// A round in which less than this part of the ceiling, or of what has arrived of late, was sent says nothing: what
  /// a burst after a pause loses was not lost by the rate, and what arrives of it is not what the path gives.
  static constexpr double kBusy = 0.75;

  struct Round {
    Time now;
    double acked = 0;        ///< bytes
    double lost = 0;         ///< bytes
    uint64_t packets = 0;    ///< lost
    double rate = 0;         ///< bytes per second that arrived
    double known = 0;        ///< bytes per second that have arrived in a round of late
    bool queue = false;      ///< packets waited: then loss is an overflow, not a policer
    bool ofCeiling = false;  ///< the sender was held back by the ceiling (or nothing), not by its user
  };
  /// `datagram`: bytes of a packet.
  explicit LossCeiling(uint64_t datagram) : datagram_(static_cast<double>(datagram)) {}
  void onRound(const Round& round);

  /// Bytes per second; more than any path gives when there is none.
  double rate() const { return rate_; }
  bool isThere() const { return rate_ < kUnbounded; }
  /// The path's usual loss, 0..1.
  double floor() const { return floor_; }

 private:
  enum class State : uint8_t { kNone, kHold, kRaise };
  bool isBusy(const Round& round) const;
  void hold(double rate, double loss, Time now);
  bool isTold() const;
  void judge(const Round& round);
  void lift();
  void blameThePath(Time now);

  double datagram_;
  State state_ = State::kNone;
  double rate_ = kUnbounded;
  double floor_ = 0;
  int suspicious_ = 0;   // rounds in turn
  double arrived_ = 0;   // the most in them, bytes per second
  double held_ = 0;      // rate before it was raised
  double trigger_ = 0;   // loss that led to the ceiling
  bool judged_ = false;  // kHold: the rate caused the loss
  int rounds_ = 0;       // in this state
  double acked_ = 0;     // bytes, in this state
  double lost_ = 0;
  Time until_;  // kHold; kNone: no trial of usual loss before
  Time begun_;  // kHold
  Duration interval_ = kFirstHold;
  Duration doubt_ = kFirstDoubt;  // until usual loss is tried again
  static constexpr double kUnbounded = 1e18;
};

}  // namespace braid
