#pragma once

#include <cstdint>

#include "ackshim/arrivals.h"
#include "ackshim/boundaries.h"
#include "ackshim/half.h"
#include "ackshim/tail_cache.h"
#include "ackshim/tracks.h"
#include "ackshim/trial.h"
#include "base/timer_wheel.h"
#include "inet/flow_key.h"

namespace braid {

/// A TCP connection between a local host and one behind the tunnel. The order of the members saves padding.
struct ShimFlow {
  FlowKey key;               ///< from the local host
  uint8_t replays : 4 = 0;   ///< to the local host, of the same segment
  uint8_t spurious : 4 = 0;  ///< replays that were not needed
  uint8_t received = 0;      ///< segments that the local host received
  uint32_t next = 0;         ///< in its hash chain, or among the free
  Stamp lastUse;
  Half out;                        ///< data of the local host
  Half in;                         ///< data to the local host
  TcpTimestamps ackTimestamps;     ///< of the peer's last ACK
  uint32_t ackFlowLabel : 20 = 0;  ///< the same
  uint32_t headLength : 12 = 0;    ///< of the host's segment at out.una; 0: not known, or longer

  // For the local host as a sender.
  Tracks tracks;
  Arrivals arrivals;
  Trial outTrial;

  // For the local host as a receiver.
  Trial inTrial;
  TailCache::List inTail;
  TailCache::List outTail;  ///< as a sender: what the tunnel dropped, or all
  Boundaries boundaries;    ///< of what it sends

  bool joined : 1 = false;      ///< no handshake was seen
  bool fromLocal : 1 = false;   ///< the first segment was the local host's
  bool ackStamped : 1 = false;  ///< the peer's last ACK had timestamps
  bool sack : 1 = false;        ///< negotiated
  bool hostTalks : 1 = false;   ///< the local host sent data after it received some
  bool doubtful : 1 = false;    ///< a RST that may be real: silent until a new ACK
  bool carried : 1 = false;     ///< at the last look the tunnel still carried its data
  bool toldHole : 1 = false;    ///< the sender knows of the hole at the edge
  bool dropped : 1 = false;     ///< outTail holds what the tunnel dropped

  /// Both ends answered each other's SYN.
  bool isProvenByHandshake() const {
    return out.known && in.known && out.una >= out.base && in.una >= in.base;
  }
};

/// What a tracked flow takes: its record, its timer and its place in the hash, without cached packets.
inline constexpr size_t kBytesPerFlow = sizeof(ShimFlow) + TimerWheel::kBytesPerTimer + sizeof(uint32_t);
static_assert(kBytesPerFlow <= 256);

}  // namespace braid
