#pragma once

#include <algorithm>

#include "base/time.h"

namespace braid {

/// The signs by which a start that doubles its rate each round trip knows that it has filled the path.
class FullPipe {
 public:
  /// draft-cardwell-iccrg-bbr-congestion-control-00 section 4.3.2.2: three rounds without a quarter more.
  static constexpr double kGrowth = 1.25;
  static constexpr int kRounds = 3;
  /// RFC 9406 section 4.3: a queue of clamp(minRtt / 8, 4 ms, 16 ms).
  static constexpr Duration kMinQueue = 4ms;
  static constexpr Duration kMaxQueue = 16ms;

  /// The queue that ends a start on a path of this RTT.
  static Duration queueOf(Duration minRtt) { return std::clamp<Duration>(minRtt / 8, kMinQueue, kMaxQueue); }

  /// A round brought this rate (bytes per second), which its sender did not limit.
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
  double highest_ = 0;  // of the last round that brought a quarter more
  int rounds_ = 0;      // in turn since; no more than say that it is full
};

}  // namespace braid
