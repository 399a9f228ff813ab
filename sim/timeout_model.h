#pragma once

// FUSO's formulas for the probability that a flow has to wait for a timeout, when one path loses
// packets at random in one direction.

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
  double tcp() const;
  /// Section IV: at least one subflow on the lossy path times out; each has its share of the
  /// packets.
  double mptcp() const;
  /// Section IV: all subflows are on the lossy path, so a copy is lost as easily as its original.
  double fuso() const;

 private:
  double repairLost(double x) const;
  double subflow() const;
};

}  // namespace braid::sim
