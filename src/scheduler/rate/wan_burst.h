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
  /// A burst with more than this part lost beyond the usual losses, and two packets, was too large.
  static constexpr double kLossy = 1.0 / 8;
  /// Weight of a burst in the usual losses.
  static constexpr double kLossGain = 1.0 / 8;
  /// Bursts grow no more for so long after one that was too large; twice as long each time, up to the second,
  /// until one of that size came through.
  static constexpr Duration kPatience = 10s;
  static constexpr Duration kMostPatience = 320s;

  /// `least`: bytes that may go at once anyway (RFC 9002 section 7.2).
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

  /// Bytes.
  double size() const { return size_; }

 private:
  /// What became of a burst.
  struct Seen {
    double acked = 0;      // bytes
    double lost = 0;       // bytes
    uint64_t packets = 0;  // lost
    Duration queues{};     // above the base RTT, summed
    int samples = 0;
    bool marked = false;

    double sent() const { return acked + lost; }
  };
  void judge(Duration target, Time now);
  bool isClean(Duration target) const;

  double least_;
  double size_;
  double usualLoss_ = 0;  // share
  Seen seen_;
  bool running_ = false;
  int rounds_ = 0;       // since it began
  double tooLarge_ = 0;  // bytes that went at once in the last burst that was too large
  Time mayGrow_;         // not before
  Duration patience_ = kPatience;
};

}  // namespace braid
