#include "scheduler/rate/pacer.h"

#include <algorithm>
#include <cmath>

namespace braid {

// The debt of a burst at a high rate is not carried over to a lower rate. Otherwise paying back 3
// ms of the high rate would take many times as long.
void Pacer::setRate(double bytesPerSecond, double leastBurst) {
  double left = burst() - debt_;
  rate_ = bytesPerSecond;
  leastBurst_ = leastBurst;
  if (debt_ > 0) debt_ = std::max(0.0, burst() - left);
}

double Pacer::burst() const {
  double datagrams = std::max(static_cast<double>(kBurstDatagrams * datagram_), leastBurst_);
  return std::isinf(rate_) ? datagrams : std::max(datagrams, rate_ * toSeconds(kBurstTime));
}

void Pacer::onSent(uint64_t bytes, Time now) {
  now = std::max(now, since_);
  debt_ = debtAt(now) + static_cast<double>(bytes);
  since_ = now;
}

Time Pacer::nextSend(uint64_t ahead) const {
  // The bucket must hold a full datagram. Otherwise its first byte would allow a whole datagram.
  double excess = debt_ + static_cast<double>(datagram_) - burst() - static_cast<double>(ahead);
  if (std::isinf(rate_) || excess <= 0) return since_;
  double wait = excess / rate_;
  constexpr double kForever = 1e9;  // seconds; far beyond any pause, far below what Time holds
  return wait < kForever ? since_ + std::chrono::ceil<Duration>(std::chrono::duration<double>(wait))
                         : kNever;
}

double Pacer::debtAt(Time now) const {
  if (debt_ == 0 || std::isinf(rate_)) return 0;
  return std::max(0.0, debt_ - rate_ * toSeconds(now - since_));
}

}  // namespace braid
