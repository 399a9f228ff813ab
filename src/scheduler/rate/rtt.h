#pragma once

#include <algorithm>
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

inline void RttEstimator::onSample(Duration latest, Duration ackDelay, Time now) {
  latest = std::max(latest, Duration{1});
  latest_ = latest;
  updateWindow(latest, now);
  if (!hasSample_) {
    hasSample_ = true;
    min_ = latest;
    smoothed_ = latest;
    variation_ = latest / 2;
    return;
  }
  min_ = std::min(min_, latest);
  Duration adjusted = latest >= min_ + ackDelay ? latest - ackDelay : latest;
  variation_ = (3 * variation_ + std::chrono::abs(smoothed_ - adjusted)) / 4;
  smoothed_ = (7 * smoothed_ + adjusted) / 8;
}

inline void RttEstimator::updateWindow(Duration latest, Time now) {
  const auto slots = static_cast<int64_t>(minima_.size());
  int64_t second = std::chrono::floor<std::chrono::seconds>(now.time_since_epoch()).count();
  second = hasSample_ ? std::max(second, second_) : second;
  auto slotOf = [&](int64_t s) -> Duration& {
    return minima_[static_cast<size_t>((s % slots + slots) % slots)];
  };
  int64_t firstFresh = std::max(second_ + 1, second + 1 - slots);
  if (!hasSample_) firstFresh = second;
  for (int64_t s = firstFresh; s <= second; ++s) slotOf(s) = Duration{};
  second_ = second;
  Duration& current = slotOf(second);
  current = current == Duration{} ? latest : std::min(current, latest);
  windowedMin_ = Duration::max();
  for (Duration d : minima_) {
    if (d != Duration{}) windowedMin_ = std::min(windowedMin_, d);
  }
}

}  // namespace braid
