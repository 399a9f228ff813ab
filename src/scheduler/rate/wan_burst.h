#pragma once

#include <algorithm>

#include "scheduler/rate/wan_path.h"

namespace braid {

/// How fast `wan` sends the burst that follows when nothing was in flight. The model's own pace spreads a
/// response over most of a round trip, for it must not queue what a full window is; a path that has shown room
/// for more need not make a short response wait. Each burst that came through without a queue doubles the pace
/// of the next one, each that did not halves it.
///
/// Ours. RFC 9002 section 7.7 asks for pacing, and leaves bursts open that the path is known to bear.
class WanBurst {
 public:
  /// Windows per smoothed RTT: of a burst on a path of which nothing is known yet, and of a stream,
  static constexpr double kLeast = 1.2;
  /// and at most.
  static constexpr double kMost = 8;
  /// A burst with more than this part lost, and two packets, was too fast. Rarer losses are the path's own.
  static constexpr double kLossy = 1.0 / 8;
  /// The pace does not grow for so long after a burst that was too fast.
  static constexpr Duration kPatience = 10s;

  /// `told`: bytes; a burst of no more says nothing, as the pacer lets it go at once.
  explicit WanBurst(uint64_t told) : told_(static_cast<double>(told)) {}

  /// Something is sent while nothing is in flight: a burst begins.
  void begin() {
    seen_ = {};
    running_ = true;
  }
  void onAck(const AckSample& ack) {
    seen_.onAck(ack);
    seen_.onMarks(ack.marks);
  }
  void onLoss(const LossSample& loss) { seen_.onLoss(loss); }
  /// All that was sent before the burst's first ACK is acknowledged or lost: the pace of the next burst is
  /// known. The sender goes on (`streams`), at the pace of a stream, or nothing is in flight. `target`: the
  /// standing queue that is aimed at.
  void end(const WanPath& path, Duration target, Time now, bool streams);

  /// Windows per smoothed RTT: of a burst, also before it begins, or of a stream.
  double pace() const { return streams_ ? kLeast : pace_; }

 private:
  bool isClean(const WanPath& path, Duration target) const;

  double told_;
  double pace_ = kLeast;
  WanRound seen_;
  bool running_ = false;  // a burst, and not all of it is known
  bool streams_ = false;
  Time mayGrow_;  // not before
};

}  // namespace braid
