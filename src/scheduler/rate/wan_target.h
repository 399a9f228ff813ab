#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.h"

namespace braid {

/// The standing queue that `wan` aims at. Ours. It falls with the cube root of the rate, so what is kept
/// queued grows with the rate to the power of 2/3: more slowly than the rate, so that several senders come to
/// equal shares. A fixed number of packets, as FAST has it, would be seconds of queue at 1 Mbit/s and nothing
/// at 1 Gbit/s.
class WanTarget {
 public:
  /// At kRate bytes per second. At another rate r it is kQueue * cbrt(kRate / r), and at least the time that
  /// two datagrams take, within kLeast..kMost.
  static constexpr Duration kQueue = 5ms;
  static constexpr double kRate = 50e6 / 8;
  static constexpr Duration kLeast = 1ms;
  static constexpr Duration kMost = 25ms;

  /// `datagram`: bytes of a full one.
  explicit WanTarget(uint64_t datagram) : datagram_(static_cast<double>(datagram)) {}

  /// So many subflows, at least 1, share the bottleneck: each takes the target of one with their rate.
  void setSharing(size_t subflows) { sharing_ = static_cast<double>(subflows); }

  /// Seconds, at a rate above 0 in bytes per second.
  double secondsAt(double rate) const;
  /// The same as a time, rounded down; kMost when the rate is not known (0).
  Duration at(double rate) const { return rate > 0 ? fromSeconds(secondsAt(rate)) : kMost; }

 private:
  double datagram_;
  double sharing_ = 1;
};

}  // namespace braid
