#include "scheduler/rate/rtt.h"

#include <algorithm>

namespace braid {

void RttEstimator::onSample(Duration latest, Duration ackDelay, Time now) {
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

void RttEstimator::updateWindow(Duration latest, Time now) {
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
