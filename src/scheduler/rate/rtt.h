#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/time.h"

namespace braid {

/// Round-trip time of one subflow (RFC 9002 section 5), plus a minimum that forgets old routes.
class RttEstimator {
 public:
  /// Assumed before the first sample (RFC 9002 section 6.2.2).
  static constexpr Duration kInitialRtt = 333ms;
  /// windowedMin() covers the current second and kMinWindowSeconds whole seconds before it. Chosen:
  /// as long as BBR's window.
  static constexpr size_t kMinWindowSeconds = 10;

  /// An ACK gave an RTT sample (RFC 9002 section 5.1): it newly acknowledged its largest packet,
  /// which was sent `latest` ago, and an ack-eliciting packet. `ackDelay`: the delay that the peer
  /// reported, already limited to its maximum.
  void onSample(Duration latest, Duration ackDelay, Time now);
  /// Forgets everything: the path is another one.
  void reset() { *this = RttEstimator(); }

  bool hasSample() const { return hasSample_; }
  /// 0 before the first sample.
  Duration latest() const { return latest_; }
  /// Smallest sample since reset(); 0 before the first.
  Duration min() const { return min_; }
  /// Smallest sample of the last kMinWindowSeconds before the latest sample; 0 before the first.
  Duration windowedMin() const { return windowedMin_; }
  /// smoothed_rtt; kInitialRtt before the first sample.
  Duration smoothed() const { return smoothed_; }
  /// rttvar; kInitialRtt / 2 before the first sample.
  Duration variation() const { return variation_; }

 private:
  void updateWindow(Duration latest, Time now);

  bool hasSample_ = false;
  Duration latest_{};
  Duration min_{};
  Duration windowedMin_{};
  Duration smoothed_ = kInitialRtt;
  Duration variation_ = kInitialRtt / 2;
  int64_t second_ = 0;                                    // of the latest sample
  std::array<Duration, kMinWindowSeconds + 1> minima_{};  // by second; 0: no sample
};

}  // namespace braid
