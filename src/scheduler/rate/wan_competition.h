#pragma once

#include <algorithm>

#include "scheduler/rate/cubic.h"
#include "scheduler/rate/wan_path.h"

namespace braid {

/// `wan` beside somebody who keeps a queue: CUBIC (RFC 9438), which takes CUBIC's share of any buffer, as
/// Copa competes with its own window (Arun and Balakrishnan, NSDI 2018, section 2.2). From time to time it
/// looks (wan_look.h) whether the other has gone. Loss counts only where it is congestion: with a long queue,
/// and more of it than usual.
class WanCompetition {
 public:
  /// The next look is after so many rounds, at first and at most (they double).
  static constexpr int kLookRounds = 8;
  static constexpr int kMostLookRounds = 256;
  /// The other has gone when a look leaves this part of the queue, or less.
  static constexpr double kGone = 0.25;
  /// Loss is congestion when the queue, by the smoothed RTT, is at least this part of the longest one seen,
  static constexpr double kFullQueue = 0.5;
  /// and the round lost more than so many times what a window usually loses; and one packet more than that
  /// where half of LossCeiling::kDoubtful is usual.
  static constexpr double kUsualLoss = 3;
  /// The longest queue seen is forgotten by one part of so many a round.
  static constexpr int kLongestLife = 64;

  WanCompetition(uint64_t datagram, uint64_t initial)
      : datagram_(datagram), initial_(initial), cubic_(datagram, initial) {}

  /// This part (0..1] of CUBIC's share.
  void setShare(double share);
  /// The mode begins with this window in bytes.
  void begin(double window, const WanPath& path);

  uint64_t window() const { return cubic_.window(); }
  double pacingRate() const { return cubic_.pacingRate(); }
  void onSent(uint64_t bytes, uint64_t inFlight, Time now) { cubic_.onSent(bytes, inFlight, now); }
  void onAck(const AckSample& ack) { cubic_.onAck(ack); }
  void onMarks(uint64_t marks, Time largestSentAt, Time now) { cubic_.onMarks(marks, largestSentAt, now); }
  void onSpuriousLoss(Time sentAt, Time now) { cubic_.onSpuriousLoss(sentAt, now); }
  /// `round`: the current one, this loss included; `window`: bytes, of the subflow now.
  void onLoss(const LossSample& loss, const WanRound& round, const WanPath& path, double window);

  /// A round has ended with this queue.
  void onRound(Duration queue) { longest_ = std::max<Duration>(queue, longest_ - longest_ / kLongestLife); }
  /// A round without a look has ended. True when it is time for one: it begins with this queue.
  bool isLookDue(Duration queue);
  /// A look left this queue: the other's has gone.
  bool isOver(Duration queue) const { return !(toSeconds(queue) > kGone * toSeconds(before_)); }

 private:
  uint64_t datagram_;
  uint64_t initial_;
  double share_ = 1;
  Cubic cubic_;
  Duration longest_{};  // queue; decays
  Duration before_{};   // the queue with which the last look began
  int lookIn_ = 0;      // rounds until the next look
  int lookRounds_ = kLookRounds;
};

}  // namespace braid
