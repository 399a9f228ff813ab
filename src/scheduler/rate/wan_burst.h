#pragma once

#include "scheduler/rate/controller.h"

namespace braid {

/// How much `wan` may send at once into an idle path. The model's pace spreads what it sends over most of a
/// round trip, for a full window in flight must not queue; a response that the path can take at once need not
/// wait for that. Bursts of which the path has borne one half may go: each that came through without a queue
/// lets the next one be twice as large, each that did not makes it half as large, and for a while no larger.
///
/// Ours. RFC 9002 section 7.7 lets a sender burst where it knows that the path can take it.
class WanBurst {
 public:
  /// A burst with more than this part lost beyond the usual losses was too large.
  static constexpr double kLossy = 1.0 / 8;
  /// The usual losses are those of what goes at once anyway, of about the last so many bytes.
  static constexpr double kLossMemory = 1e6;
  /// Bursts grow no more for so long after one that was too large; twice as long each time, up to the second,
  /// until one of that size came through.
  static constexpr Duration kPatience = 10s;
  static constexpr Duration kMostPatience = 320s;

  /// `least`: bytes that may go at once anyway (RFC 9002 section 7.2), and are never too many.
  explicit WanBurst(uint64_t least) : least_(static_cast<double>(least)), size_(least_) {}

  /// Something is sent while nothing is in flight. What became of the burst before is known now. `target`:
  /// the standing queue that is aimed at.
  void begin(Duration target, Time now);
  /// `base`: the RTT without a queue.
  void onAck(const AckSample& ack, Duration base);
  void onLoss(const LossSample& loss);
  /// A round has ended. The second one after begin() ends the burst: all of its first round trip is known, and
  /// the sender goes on.
  void onRound(Duration target, Time now);

  /// Bytes that may go at once; 0 from the first ACK on, when the path is not idle.
  double size() const { return isFresh_ ? size_ : 0; }

 private:
  /// What became of what a burst sent at once.
  struct Seen {
    double acked = 0;   // bytes
    double lost = 0;    // bytes
    Duration queues{};  // above the base RTT, summed
    int samples = 0;
    bool marked = false;

    double sent() const { return acked + lost; }
  };
  bool isWatched() const { return isRunning_ && seen_.sent() < size_; }
  void judge(Duration target, Time now);
  bool isClean(Duration target) const;
  double usualLoss() const;

  double least_;
  double size_;
  double usualSent_ = 0, usualLost_ = 0;  // bytes
  Seen seen_;
  bool isFresh_ = false;
  bool isRunning_ = false;  // not yet judged
  int rounds_ = 0;          // since it began
  double tooLarge_ = 0;     // bytes of the last burst that was
  Time mayGrow_;            // not before
  Duration patience_ = kPatience;
};

}  // namespace braid
