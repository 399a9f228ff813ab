#pragma once

#include <cstdint>
#include <limits>

#include "base/time.h"

namespace braid {

/// Spaces the datagrams of one subflow: a token bucket (RFC 9002 section 7.7). A driver that wakes up late
/// sends what was due meanwhile, up to the burst.
class Pacer {
 public:
  /// Burst in datagrams: the initial window that RFC 9002 section 7.2 lets go at once.
  static constexpr uint64_t kBurstDatagrams = 10;
  /// The burst is at least what the rate gives in this time, so that a driver that wakes up some milliseconds
  /// late fills fast links. Ours.
  static constexpr Duration kBurstTime = 3ms;

  /// `datagram`: size of a full datagram in bytes.
  explicit Pacer(uint64_t datagram = 1500) : datagram_(datagram) {}

  /// Bytes per second, 0 or more; infinity: no pacing. Holds from the last onSent() on. What was left of the burst
  /// then is left, as much of it as the burst at the new rate holds. `leastBurst`: bytes.
  void setRate(double bytesPerSecond, double leastBurst = 0);
  double rate() const { return rate_; }
  /// Bytes that may leave at once after a pause.
  double burst() const;

  /// A datagram left. A datagram may leave before nextSend() (probes, ACKs): it is paid back later.
  void onSent(uint64_t bytes, Time now);
  /// When the next datagram may leave: in the past when one may leave now, kNever for rate 0 and an empty
  /// bucket. `ahead`: of a bucket that holds so many bytes more.
  Time nextSend(uint64_t ahead = 0) const;

 private:
  double debtAt(Time now) const;

  uint64_t datagram_;
  double rate_ = std::numeric_limits<double>::infinity();
  double leastBurst_ = 0;
  double debt_ =
      0;  // bytes sent at `since_` and not yet covered by the rate; at `burst()` the bucket is empty
  Time since_ = Time::min();
};

}  // namespace braid
