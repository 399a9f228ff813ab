#pragma once

// The numbers that session datagrams speak of, each a type of its own (docs/protocol.md). Rooms below this one,
// which do not know them, keep plain integers: whoever calls them converts.

#include <cstdint>

#include "base/number.h"

namespace braid {

/// Which subflow of a session: 0..255, given by the initiator and never to another one (section 3).
using SubflowId = Number<struct SubflowIdTag, uint8_t>;

/// Which datagram of a subflow and direction (section 3): counts up from 0 by one a datagram, below 2^62, and is
/// never used again. A header carries the low 32 bits.
using PacketNumber = Number<struct PacketNumberTag, uint64_t>;

/// Which flow of a session and direction (section 6): below kDatagramFlow (frames.h) the ordered and repaired ones,
/// of those from kOrderedDatagramFlow on with little patience, and then the timely ones. Given by the sender; another
/// flow takes it over when its flow is forgotten.
using FlowNumber = Number<struct FlowNumberTag, uint16_t>;

/// Data sequence number (section 6): which packet of a flow number, from 0 on and below 2^62. Goes on when another
/// flow takes the flow number over; a DATA frame carries the low 32 bits.
using Dsn = Number<struct DsnTag, uint64_t>;

/// Which coding block (section 8): counts up with each block of a session and direction, and wraps at 2^16.
using BlockId = Number<struct BlockIdTag, uint16_t>;

/// Which stream of a session (section 13): even ones are opened by the session's initiator, odd ones by its responder,
/// each side's in turn from its first on; never used again. Below 2^62.
using StreamId = Number<struct StreamIdTag, uint64_t>;

}  // namespace braid
