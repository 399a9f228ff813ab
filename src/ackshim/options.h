#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/time.h"
#include "inet/prefix.h"

namespace braid {

/// Flows to which the shim does or does not apply: an end within `prefix`, a port within the range.
struct ShimRule {
  Prefix prefix;  ///< of no family: every address
  uint16_t firstPort = 0;
  uint16_t lastPort = 65535;
  bool enabled = false;
};

/// Everything may be set anew at any time but the sizes.
struct AckShimOptions {
  /// T-RACKs section IV-A and Algorithms 1 and 2.
  uint32_t alpha = 10;       ///< round trips without an ACK before the shim speaks; at least 1
  uint8_t phi = 3;           ///< duplicate ACKs that make a sender retransmit
  uint32_t gamma = 100'000;  ///< acknowledged bytes of a burst above which it is large and left alone
  Duration rtoMin = 200ms;   ///< the sender's own timer; the shim is silent when it is near
  Duration inactivity = 1s;  ///< data after so long without any begin a burst

  /// Which ways of speaking are used.
  bool duplicateAcks = true;   ///< T-RACKs, to local senders
  bool holes = true;           ///< tell a local sender what was lost on its way to the gateway
  bool replay = true;          ///< send again what a local receiver does not acknowledge
  bool cacheOutgoing = false;  ///< keep what local senders sent too; for a peer that has no shim
  bool sackGap = false;  ///< the paper's SACK block 40 bytes above the ACK, when nothing better is known

  /// Ours.
  Duration reorderAllowance = 1ms;  ///< least age of a hole; a quarter of the leg's RTT if that is more
  Duration replayMargin = 3ms;      ///< added to the leg's RTT and variation: the host's own time
  /// An ACK that may be delayed is waited for so much longer: the least delay of Linux. RFC 9293
  /// section 3.8.6.3 allows 500 ms; who waits longer than this shows by a D-SACK.
  Duration ackDelay = 40ms;
  Duration idle = 120s;  ///< a flow without packets is forgotten; at most kMaxIdle

  static constexpr Duration kMaxIdle = 30min;

  /// Sizes, fixed at the start.
  size_t maxFlows = 16384;
  size_t maxHalfOpen = 4096;   ///< flows that did not yet prove to have two ends
  size_t cachePackets = 2048;  ///< of all flows; at most 65534, 0 for no cache
  size_t cachePerFlow = 16;    ///< the last ones; at most 255

  /// Takes over the sizes of another one.
  void keepSizes(const AckShimOptions& of) {
    maxFlows = of.maxFlows;
    maxHalfOpen = of.maxHalfOpen;
    cachePackets = of.cachePackets;
    cachePerFlow = of.cachePerFlow;
  }

  std::vector<ShimRule> rules;  ///< the first that fits decides; none: enabled
};

}  // namespace braid
