#pragma once

// FUSO's formulas for the probability that a flow has to wait for a timeout, when one path loses
// packets at random in one direction.

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace braid::sim {

/// `loss`: loss rate of the lossy path, [0, 1]; `packets`: packets of the flow, at least 1.
struct TimeoutModel {
  double loss = 0;
  double packets = 1;
  size_t paths = 1;     ///< one of them is lossy; connections and subflows are hashed to the paths
  size_t subflows = 4;  ///< of MPTCP and FUSO

  /// Section II-B with early retransmit: the last packet is lost (p), or another one twice (1 - (1
  /// - p^2)^(x - 1)). A lower bound, since the loss of whole windows is left out.
  double tcp() const { return (loss + repairLost(packets)) / static_cast<double>(paths); }
  /// Section IV: at least one subflow on the lossy path times out; each has its share of the
  /// packets.
  double mptcp() const {
    return 1 - std::pow(1 - subflow() / static_cast<double>(paths), static_cast<double>(subflows));
  }
  /// Section IV: all subflows are on the lossy path, so a copy is lost as easily as its original.
  double fuso() const {
    double n = static_cast<double>(subflows), once = subflow();
    double retransmission = repairLost(packets / n);
    return std::pow(1 / static_cast<double>(paths), n) *
           ((1 - 1 / n) * once * once + (retransmission + loss * loss) / n);
  }

 private:
  /// Probability that for at least one of x - 1 packets both the packet and its retransmission are
  /// lost.
  double repairLost(double x) const { return 1 - std::pow(1 - loss * loss, std::max(x - 1, 0.0)); }
  double subflow() const { return loss + repairLost(packets / static_cast<double>(subflows)); }
};

}  // namespace braid::sim
