#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/time.h"
#include "inet/addresses.h"

namespace braid {

/// A rule that enables or disables the shim for flows with an endpoint within `prefix` and a port
/// within the range.
struct ShimRule {
  Prefix prefix;  ///< without a family: every address
  uint16_t firstPort = 0;
  uint16_t lastPort = 65535;
  bool enabled = false;
};

/// Everything except the sizes may be changed at any time.
struct AckShimOptions {
  /// Parameters of T-RACKs (section IV-A, Algorithms 1 and 2).
  uint32_t alpha = 10;  ///< round trips without an ACK before the shim speaks; at least 1
  uint8_t phi = 3;      ///< number of duplicate ACKs that makes a sender retransmit
  /// A burst is large, and left alone, once this number of its bytes is acknowledged.
  uint32_t gamma = 100'000;
  Duration rtoMin = 200ms;   ///< the sender's own timer; when it is near, the shim stays silent
  Duration inactivity = 1s;  ///< data after a pause of this length begin a burst

  /// Which ways of waking senders and repairing losses are used.
  bool duplicateAcks = true;  ///< T-RACKs, to local senders
  bool holes = true;          ///< tell a local sender which data was lost on its way to the gateway
  bool replay = true;         ///< send segments again that a local receiver does not acknowledge
  bool cacheOutgoing = false;  ///< keep local senders' segments, too; for a peer without a shim
  /// Use the paper's SACK block 40 bytes above the ACK when the segment boundaries are not known.
  bool sackGap = false;

  /// Parameters that are not from the paper.
  /// Age of a hole at which it counts as a loss; a quarter of the local leg's RTT if that is more.
  Duration reorderAllowance = 1ms;
  /// Added to the local leg's RTT and variation, for the host's own processing time.
  Duration replayMargin = 3ms;
  /// Added to the wait for an ACK that the host may delay: the least delay of Linux. RFC 9293
  /// section 3.8.6.3 allows 500 ms; a host that delays for longer than this value shows by a
  /// D-SACK.
  Duration ackDelay = 40ms;
  Duration idle = 120s;  ///< a flow without packets is forgotten; at most kMaxIdle

  static constexpr Duration kMaxIdle = 30min;

  /// Sizes, fixed at the start.
  size_t maxFlows = 16384;
  size_t maxHalfOpen = 4096;   ///< flows that did not yet prove to have two ends
  size_t cachePackets = 2048;  ///< packets in the cache, at most 65534; 0: no cache
  size_t cachePerFlow = 16;  ///< the last segments cached for each direction of a flow; at most 255

  /// Copies the sizes from `of`.
  void keepSizes(const AckShimOptions& of) {
    maxFlows = of.maxFlows;
    maxHalfOpen = of.maxHalfOpen;
    cachePackets = of.cachePackets;
    cachePerFlow = of.cachePerFlow;
  }

  std::vector<ShimRule> rules;  ///< the first rule that matches decides; without a match: enabled
};

}  // namespace braid
