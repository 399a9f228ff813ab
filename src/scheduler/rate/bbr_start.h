#pragma once

#include <algorithm>

#include "scheduler/rate/controller.h"
#include "scheduler/rate/full_pipe.h"

namespace braid {

/// The end of BBR's start: three rounds that the sender did not limit have not brought a quarter more
/// (FullPipe), or a queue shows by the smallest RTT of a round (RFC 9406 section 4.2). A sender that never
/// fills the window itself would never see the plateau.
class BbrStart {
 public:
  /// RFC 9406 section 4.3: samples that the smallest RTT of a round wants.
  static constexpr int kSamples = 8;

  void onAck(const AckSample& ack) {
    if (ack.deliveryRate > 0) limited_ |= ack.appLimited;
    if (ack.rtt <= Duration{}) return;
    rtt_ = std::min(rtt_, ack.rtt);
    ++samples_;
  }
  /// A round has ended. True: the pipe is full.
  bool onRound(double bandwidth, Duration minRtt) {
    if (!limited_) pipe_.onRound(bandwidth);
    bool queued = samples_ >= kSamples && rtt_ >= minRtt + FullPipe::queueOf(minRtt);
    rtt_ = Duration::max();
    samples_ = 0;
    limited_ = false;
    return queued || pipe_.isFull();
  }

 private:
  FullPipe pipe_;
  // Of the round:
  Duration rtt_ = Duration::max();  // smallest sample
  int samples_ = 0;
  bool limited_ = false;  // the sender limited its rate
};

}  // namespace braid
