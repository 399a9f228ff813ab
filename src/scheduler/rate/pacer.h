#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/time.h"

namespace braid {

/// Spaces the datagrams of one subflow: a token bucket (RFC 9002 section 7.7). A caller that wakes
/// up late may send what became due meanwhile, up to burst().
class Pacer {
 public:
  /// Burst in datagrams: the initial window, which RFC 9002 section 7.2 allows to be sent at once.
  static constexpr uint64_t kBurstDatagrams = 10;
  /// The burst is at least what the rate gives in this time. Chosen: a caller that wakes up some
  /// milliseconds late must still fill fast links.
  static constexpr Duration kBurstTime = 3ms;

  /// `datagram`: size of a full datagram in bytes.
  explicit Pacer(uint64_t datagram = 1500) : datagram_(datagram) {}

  /// Sets the rate in bytes per second, 0 or more; infinity: no pacing. The rate counts from the
  /// last onSent() on. What was left of the burst then stays, up to the burst at the new rate.
  /// `leastBurst`: lower bound of the burst, bytes.
  void setRate(double bytesPerSecond, double leastBurst = 0);
  double rate() const { return rate_; }
  /// Bytes that may be sent at once after a pause.
  double burst() const;

  /// A datagram was sent. It may be sent before nextSend() (probes, ACKs): later datagrams then
  /// wait longer.
  void onSent(uint64_t bytes, Time now);
  /// When the next datagram may be sent. A time in the past means now; kNever: the rate is 0 and
  /// the bucket is empty. `ahead`: bytes to count as being in the bucket in addition.
  Time nextSend(uint64_t ahead = 0) const;

 private:
  double debtAt(Time now) const;

  uint64_t datagram_;
  double rate_ = std::numeric_limits<double>::infinity();
  double leastBurst_ = 0;
  double debt_ = 0;  // bytes that the rate had not covered at `since_`; burst(): an empty bucket
  Time since_ = Time::min();
};

// The debt of a burst at a high rate is not carried over to a lower rate. Otherwise paying back 3
// ms of the high rate would take many times as long.
inline void Pacer::setRate(double bytesPerSecond, double leastBurst) {
  double left = burst() - debt_;
  rate_ = bytesPerSecond;
  leastBurst_ = leastBurst;
  if (debt_ > 0) debt_ = std::max(0.0, burst() - left);
}

inline double Pacer::burst() const {
  double datagrams = std::max(static_cast<double>(kBurstDatagrams * datagram_), leastBurst_);
  return std::isinf(rate_) ? datagrams : std::max(datagrams, rate_ * toSeconds(kBurstTime));
}

inline void Pacer::onSent(uint64_t bytes, Time now) {
  now = std::max(now, since_);
  debt_ = debtAt(now) + static_cast<double>(bytes);
  since_ = now;
}

inline Time Pacer::nextSend(uint64_t ahead) const {
  // The bucket must hold a full datagram. Otherwise its first byte would allow a whole datagram.
  double excess = debt_ + static_cast<double>(datagram_) - burst() - static_cast<double>(ahead);
  if (std::isinf(rate_) || excess <= 0) return since_;
  double wait = excess / rate_;
  constexpr double kForever = 1e9;  // seconds; far beyond any pause, far below what Time holds
  return wait < kForever ? since_ + std::chrono::ceil<Duration>(std::chrono::duration<double>(wait))
                         : kNever;
}

inline double Pacer::debtAt(Time now) const {
  if (debt_ == 0 || std::isinf(rate_)) return 0;
  return std::max(0.0, debt_ - rate_ * toSeconds(now - since_));
}

}  // namespace braid
