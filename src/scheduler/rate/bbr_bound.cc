#include "scheduler/rate/bbr_bound.h"

#include <algorithm>

namespace braid {

bool BbrBound::onRound(Duration srtt, Duration minRtt, double window, double least) {
  double all = lost_ + acked_;
  double share = all > 0 ? lost_ / all : 0;
  bool queue = srtt > fromSeconds(toSeconds(minRtt) * kQueueRtt);
  bool several = lost_ > 2 * datagram_;
  bool congested = marked_ || (several && share > (queue ? kQueueLoss : kPolicerLoss));
  if (congested) bound_ = std::max(std::min(bound_, window) * kBackoff, least);
  lost_ = acked_ = 0;
  marked_ = false;
  return congested;
}

}  // namespace braid
