#pragma once

#include <cstddef>

#include "base/random.h"
#include "base/time.h"

namespace braid::sim {

/// Random early detection (Floyd and Jacobson 1993, section 4, "gentle"): tells which arriving packets are to be marked
/// or dropped.
class Red {
 public:
  static constexpr double kMin = 20;        ///< packets of average queue; ours: as DCTCP's K at 1 Gbit/s
  static constexpr double kMaxByMin = 3;    ///< the upper threshold by the lower one (ns-2's rule)
  static constexpr double kWeight = 0.002;  ///< of the moving average
  static constexpr double kMost = 0.1;      ///< probability at the upper threshold

  /// `packetTime`: what one packet takes to send; `least`: the lower threshold, packets.
  explicit Red(Duration packetTime, double least = kMin)
      : packetTime_(packetTime), min_(least), max_(least * kMaxByMin) {}

  /// A packet finds so many waiting; an empty queue has been empty since `emptySince`.
  bool hits(size_t waiting, Time emptySince, Time now, Random& random);

 private:
  Duration packetTime_;
  double min_, max_;
  double average_ = 0;
  int sinceHit_ = 0;  // packets since the last that was hit
};

}  // namespace braid::sim
