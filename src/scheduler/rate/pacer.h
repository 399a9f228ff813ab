#pragma once

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

}  // namespace braid
