#pragma once

#include <cstdint>

#include "base/time.h"
#include "scheduler/rate/controller.h"

namespace braid {

/// How many bytes the `wan` congestion control may send at once, without pacing, into a path on
/// which nothing is in flight. Pacing spreads a window over most of a round trip, so a short
/// response would wait although the path could take it at once. RFC 9002 section 7.7 allows such
/// bursts where the sender knows that the path can take them.
///
/// The size is learned from the bursts before, beginning with `least`. After a burst that came
/// through without a queue, high loss or CE marks, size() is at least twice that burst. After one
/// that did not, size() is half of it, and does not grow for a while (kGrowthPause).
///
/// Life of a burst:
///
///     begin()       something is sent while nothing is in flight. size() bytes may leave at once
///     first onAck() size() is 0 from now on: the path is not idle
///     ...           ACKs and losses of the first size() bytes are counted; what is paced after
///                   them may queue or be lost for other reasons
///     judged        by the second onRound() after begin(), when the fate of all that was sent in
///                   the first round trip is known, or by the next begin() if that is earlier
///
/// Wan owns it and makes all calls. Bytes count whole datagrams.
class WanBurst {
 public:
  /// A burst was too large when the share of it that was lost (0..1) exceeds the usual loss by more
  /// than kMaxExtraLoss.
  static constexpr double kMaxExtraLoss = 1.0 / 8;
  /// The usual loss is that of bursts of at most `least` bytes, over about the last
  /// kUsualLossMemory bytes of them.
  static constexpr double kUsualLossMemory = 1e6;
  /// How long size() does not grow after a burst that was too large. Each further one doubles the
  /// time, up to kMaxGrowthPause; a burst of the size that was too large which comes through resets
  /// it.
  static constexpr Duration kGrowthPause = 10s;
  static constexpr Duration kMaxGrowthPause = 320s;

  /// `least`: bytes that may always be sent at once, above 0: the initial window (RFC 9002 section
  /// 7.2). A burst of that size never counts as too large.
  explicit WanBurst(uint64_t least) : least_(static_cast<double>(least)), size_(least_) {}

  /// Begins a burst, and judges the one before if that is not done yet. `target`: the standing
  /// queue that `wan` aims at; a burst whose mean queue is more than half of it was too large.
  void begin(Duration target, Time now);
  /// `base`: the RTT without a queue.
  void onAck(const AckSample& ack, Duration base);
  void onLoss(const LossSample& loss);
  /// A round of the subflow (WanRounds) has ended. `target`: as for begin().
  void onRound(Duration target, Time now);

  /// Bytes that may be sent at once now; 0 before begin() and from the first ACK of the burst on.
  double size() const { return isUnacked_ ? size_ : 0; }

 private:
  /// What became of the bytes that the burst sent at once.
  struct Seen {
    double acked = 0;   // bytes
    double lost = 0;    // bytes
    Duration queues{};  // sum over the RTT samples: time above the base RTT
    int samples = 0;
    bool marked = false;

    double sent() const { return acked + lost; }
  };
  bool isWatched() const { return isRunning_ && seen_.sent() < size_; }
  void judge(Duration target, Time now);
  bool isClean(Duration target) const;
  double usualLoss() const;

  double least_;                          // bytes
  double size_;                           // bytes
  double usualSent_ = 0, usualLost_ = 0;  // bytes
  Seen seen_;
  bool isUnacked_ = false;  // the burst has begun, and none of it is acknowledged
  bool isRunning_ = false;  // the burst has begun and is not judged yet
  int rounds_ = 0;          // rounds that ended since it began
  double tooLarge_ = 0;     // bytes of the last burst that was too large
  Time mayGrowAt_;          // size_ does not grow before
  Duration growthPause_ = kGrowthPause;
};

}  // namespace braid
