#include "sim/timeout_model.h"

#include <algorithm>
#include <cmath>

namespace braid::sim {

/// Probability that for at least one of x - 1 packets both the packet and its retransmission are
/// lost.
double TimeoutModel::repairLost(double x) const {
  return 1 - std::pow(1 - loss * loss, std::max(x - 1, 0.0));
}

double TimeoutModel::subflow() const {
  return loss + repairLost(packets / static_cast<double>(subflows));
}

double TimeoutModel::tcp() const {
  return (loss + repairLost(packets)) / static_cast<double>(paths);
}

double TimeoutModel::mptcp() const {
  return 1 - std::pow(1 - subflow() / static_cast<double>(paths), static_cast<double>(subflows));
}

double TimeoutModel::fuso() const {
  double n = static_cast<double>(subflows), once = subflow();
  double retransmission = repairLost(packets / n);
  return std::pow(1 / static_cast<double>(paths), n) *
         ((1 - 1 / n) * once * once + (retransmission + loss * loss) / n);
}

}  // namespace braid::sim
