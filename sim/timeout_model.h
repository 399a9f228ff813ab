#pragma once

// FUSO's closed forms: how likely a flow is to wait for a timeout when one path loses packets at random, one way.

#include <cstddef>

namespace braid::sim {

/// `loss`: of the lossy path, [0, 1]; `packets`: of the flow, at least 1.
struct TimeoutModel {
  double loss = 0;
  double packets = 1;
  size_t paths = 1;     ///< of which one is lossy; connections and subflows are hashed to them
  size_t subflows = 4;  ///< of MPTCP and FUSO

  /// Section II-B with early retransmit: the last packet is lost, p, or another one twice, 1 - (1 - p^2)^(x - 1). A
  /// lower bound: the loss of whole windows is left out.
  double tcp() const;
  /// Section IV: a subflow on the lossy path times out, each with its share of the packets.
  double mptcp() const;
  /// Section IV: all subflows are on the lossy path, and the copy is no better than its original.
  double fuso() const;

 private:
  double repairLost(double x) const;
  double subflow() const;
};

}  // namespace braid::sim
