#include "scheduler/rate/wan_target.h"

#include <algorithm>
#include <cmath>

namespace braid {

double WanTarget::secondsAt(double rate) const {
  rate *= sharing_;
  double few = 2 * datagram_ / rate;
  double target = std::max(toSeconds(kQueue) * std::cbrt(kRate / rate), few);
  return std::clamp(target, toSeconds(kLeast), toSeconds(kMost));
}

}  // namespace braid
