#pragma once

#include <cstddef>
#include <cstdint>

#include "ackshim/arrivals.h"
#include "ackshim/boundaries.h"
#include "ackshim/flow_index.h"
#include "ackshim/half.h"
#include "ackshim/tail_cache.h"
#include "ackshim/tracks.h"
#include "ackshim/trials.h"
#include "base/timer_wheel.h"
#include "inet/flow_key.h"

namespace braid {

/// A TCP connection between a local host and one behind the tunnel: what every packet needs, in three cache
/// lines, the 5-tuple in the first.
///
/// AckShim lets both halves take note of each packet, and writes lastUse and doubtful; TrackedFlows writes
/// timerAt; Openings begins a flow, with what its handshake tells. From then on the rest belongs to ToReceiver
/// (replays, spurious, received, inTail) or to ToSender (all others). Shared are `tried`, which each sets and
/// nobody takes back, and the RTT of a half, of which ToReceiver (in) or ToSender (out) ends the sample that a
/// copy has spoilt.
struct alignas(64) ShimFlow {
  FlowKey key;               ///< from the local host
  uint8_t replays : 4 = 0;   ///< to the local host, of the same segment
  uint8_t spurious : 4 = 0;  ///< replays that came too soon, and are not forgiven
  Stamp lastUse;
  Stamp timerAt;                   ///< its timer fires then or before
  bool joined : 1 = false;         ///< no handshake was seen
  bool fromLocal : 1 = false;      ///< the first segment was the local host's
  bool ackStamped : 1 = false;     ///< the peer's last ACK had timestamps
  bool sack : 1 = false;           ///< negotiated
  bool hostTalks : 1 = false;      ///< the local host sent data after it received some
  bool doubtful : 1 = false;       ///< a RST that may be real: silent until a new ACK
  bool carried : 1 = false;        ///< the tunnel may still carry its data: not seen otherwise yet
  bool toldHole : 1 = false;       ///< the sender knows of the hole at the edge
  bool dropped : 1 = false;        ///< outTail holds what the tunnel dropped
  bool gap : 1 = false;            ///< not all before out.nxt came: Troubles::arrivals says what did
  bool tried : 1 = false;          ///< the shim acted: see the trials
  bool again : 1 = false;          ///< the local host sent what is at out.una once more; outTail holds it
  Boundaries boundaries;           ///< of what the local host sends
  TailCache::List inTail;          ///< what it was given
  uint16_t received = 0;           ///< segments that it received; ToReceiver begins again with them at times
  Half out;                        ///< data of the local host
  Tracks tracks;                   ///< the local host as a sender
  uint32_t ackFlowLabel : 20 = 0;  ///< of the peer's last ACK
  uint32_t headLength : 12 = 0;    ///< of the host's segment at out.una; 0: not known, or longer
  Half in;                         ///< data to the local host
  TcpTimestamps ackTimestamps;     ///< of the peer's last ACK
  TailCache::List outTail;         ///< of the local host: sent again, dropped by the tunnel, or all

  /// Both ends answered each other's SYN.
  bool isProvenByHandshake() const {
    return out.known && in.known && out.una >= out.base && in.una >= in.base;
  }
};
static_assert(sizeof(ShimFlow) == 192 && offsetof(ShimFlow, out) == 64 && offsetof(ShimFlow, in) == 128);

/// What a flow needs only when something went wrong.
struct Troubles {
  Arrivals arrivals;            ///< of the local host's data, while there is a gap
  Trials::Newest outTrial = 0;  ///< what was done for the local host as a sender
  Trials::Newest inTrial = 0;   ///< as a receiver
};

/// What a tracked flow takes: its record, timer and place in the index, without cached packets.
inline constexpr size_t kBytesPerFlow =
    sizeof(ShimFlow) + sizeof(Troubles) + TimerWheel::kBytesPerTimer + FlowIndex::kBytesPerId;
static_assert(kBytesPerFlow <= 256);

}  // namespace braid
