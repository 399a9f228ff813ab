#pragma once

#include <cstddef>

#include "base/random.h"
#include "base/time.h"

namespace braid::sim {

/// Random early detection (Floyd and Jacobson 1993, section 4, "gentle"): decides which arriving
/// packets are marked or dropped.
class Red {
 public:
  /// Lower threshold, packets of average queue; chosen: DCTCP's K at 1 Gbit/s
  static constexpr double kMin = 20;
  /// Upper threshold divided by the lower one (ns-2's rule)
  static constexpr double kMaxByMin = 3;
  static constexpr double kWeight = 0.002;  ///< of the moving average
  static constexpr double kMost = 0.1;      ///< marking probability at the upper threshold

  /// `packetTime`: transmission time of one packet; `least`: the lower threshold, packets.
  explicit Red(Duration packetTime, double least = kMin)
      : packetTime_(packetTime), min_(least), max_(least * kMaxByMin) {}

  /// True when the arriving packet must be marked or dropped. `waiting`: packets in the queue; if
  /// 0, the queue has been empty since `emptySince`.
  bool hits(size_t waiting, Time emptySince, Time now, Random& random);

 private:
  Duration packetTime_;
  double min_, max_;
  double average_ = 0;
  int sinceHit_ = 0;  // packets since the last one that was marked or dropped
};

}  // namespace braid::sim
