#pragma once

#include "scheduler/rate/full_pipe.h"
#include "scheduler/rate/wan_path.h"

namespace braid {

/// The start of `wan`: the window doubles each round trip until one round of it
/// - shows a queue: RFC 9406 section 4.2, with the RTT compared to the path's base RTT, fewer samples, and
///   the mean as a second sign; or
/// - is the third in turn in which the rate did not grow by a quarter (FullPipe); or
/// - lost packets in number; or was marked.
/// There is no conservative slow start after it (RFC 9406 section 4.2, CSS): the model corrects an early end
/// within rounds.
class WanStart {
 public:
  /// The smallest RTT of a round counts with so many samples; RFC 9406 section 4.3 has 8. Ours.
  static constexpr int kSamples = 4;
  /// A mean RTT with so many times the queue that ends the start ends it as well. Ours.
  static constexpr int kMeanQueue = 2;
  /// A round with more than this share of its bytes, and LossCeiling::kLeastLost packets, lost. Ours.
  static constexpr double kLoss = 0.1;

  /// Bytes that an ACK adds to this window: what it acknowledges, when half the window was in flight.
  static double growth(const AckSample& ack, double window) {
    return static_cast<double>(ack.inFlight) >= window / 2 ? static_cast<double>(ack.bytes) : 0;
  }
  /// A round has ended, and is in `path`; `used`: its window was in use. True: the start is over.
  bool onRound(const WanRound& round, const WanPath& path, bool used);

 private:
  FullPipe pipe_;
};

}  // namespace braid
