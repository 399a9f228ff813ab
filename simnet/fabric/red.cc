#include "simnet/fabric/red.h"

#include <cmath>

namespace braid::sim {

// While the queue is empty the average decays as if packets were being sent. Between the thresholds
// the marked or dropped packets are spread evenly.
bool Red::hits(size_t waiting, Time emptySince, Time now, Random& random) {
  if (waiting == 0) average_ *= std::pow(1 - kWeight, (now - emptySince) / packetTime_);
  average_ += kWeight * (static_cast<double>(waiting) - average_);
  if (average_ < min_) {
    sinceHit_ = 0;
    return false;
  }
  double share = (average_ - min_) / (max_ - min_);
  double p = kMost * share;
  if (average_ >= max_) p = kMost + (1 - kMost) * (average_ - max_) / max_;
  ++sinceHit_;
  double spread = p * sinceHit_ < 1 ? p / (1 - p * sinceHit_) : 1;
  if (!random.chance(spread)) return false;
  sinceHit_ = 0;
  return true;
}

}  // namespace braid::sim
