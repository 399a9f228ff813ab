#pragma once

#include <algorithm>

#include "base/time.h"

namespace braid {

/// How a start that doubles its rate each round trip notices that it has filled the path.
class FullPipe {
 public:
  /// The path is full after kRounds rounds in a row in which the rate did not grow by the factor
  /// kGrowth (draft-cardwell-iccrg-bbr-congestion-control-00 section 4.3.2.2).
  static constexpr double kGrowth = 1.25;
  static constexpr int kRounds = 3;
  /// Bounds of queueOf(). RFC 9406 section 4.3: a queue of clamp(minRtt / 8, 4 ms, 16 ms).
  static constexpr Duration kMinQueue = 4ms;
  static constexpr Duration kMaxQueue = 16ms;

  /// The queue, in time, that ends a start on a path with this RTT.
  static Duration queueOf(Duration minRtt) {
    return std::clamp<Duration>(minRtt / 8, kMinQueue, kMaxQueue);
  }

  /// A round has ended with this rate (bytes per second), which was not limited by a lack of data.
  void onRound(double rate) {
    if (rate < highest_ * kGrowth) {
      if (!isFull()) ++rounds_;
    } else {
      highest_ = rate;
      rounds_ = 0;
    }
  }
  bool isFull() const { return rounds_ >= kRounds; }

 private:
  double highest_ = 0;  // rate of the last round that grew by kGrowth
  int rounds_ = 0;      // rounds in a row without that growth; stops at kRounds
};

}  // namespace braid
