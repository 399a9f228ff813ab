#pragma once

// What arrives at a session: opened datagrams go in, inner packets come out, and everybody whom a frame concerns
// is told.
//
//     DATA                      datagram flows: past a filter of duplicates; ordered flows: into the resequencer
//     SKIP                      the resequencer waits no longer
//     PARITY, PARITY_TAIL       BlockReceiver; what decoding gives back is read like a datagram
//     RECOVERED                 Protector: what it has sent need not be repaired
//     ACK, path frames, status  the subflow that is meant
//     SUBFLOW_PREFERENCE        PathDuties
//     CLOSE                     isClosed()
//
// Frames take effect in their order, but for the last DATA frame of a datagram: it takes over the datagram's
// buffer, so it comes last. Everything is the peer's word and is checked; a malformed datagram is not
// acknowledged, and what its frames said up to there holds.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tunnel/lane/duplicate_filter.h"
#include "tunnel/lane/resequencer.h"
#include "tunnel/session/session_parts.h"
#include "tunnel/session/session_status.h"
#include "tunnel/session/subflow_watch.h"
#include "tunnel/wire/frame_reader.h"

namespace braid {

class Inbound {
 public:
  /// How a datagram arrived.
  struct Arrival {
    uint64_t packetNumber = 0;
    Ecn ecn = Ecn::kNotEct;
    size_t size = 0;  ///< bytes of UDP payload
    Route from;
    Time now;
  };

  Inbound(const SessionParts& parts, SubflowWatch& watch);

  void setTunables();
  /// `frames`: an opened datagram of the subflow, header and tag cut off. False when malformed.
  bool onDatagram(Subflow& subflow, Packet frames, const Arrival& arrival);
  void onTimer(Time now);
  Time nextDeadline() const { return resequencer_.nextDeadline(); }

  /// The peer has said CLOSE.
  bool isClosed() const { return isClosed_; }
  const DropCounts& drops() const { return resequencer_.drops(); }
  const InboundCounts& counts() const { return counts_; }
  /// Inner packets that wait for order.
  uint64_t heldPackets() const { return resequencer_.heldPackets(); }
  uint64_t heldBytes() const { return resequencer_.heldBytes(); }

 private:
  void onFrame(Subflow& subflow, const WireFrame& frame, const Arrival& arrival);
  bool onData(const DataFrame& frame, Packet packet, Time now);
  void takeRestored(Time now);
  void deliverInOrder();

  SessionParts parts_;
  SubflowWatch& watch_;
  Resequencer resequencer_;
  std::vector<DuplicateFilter> datagramFilters_;  ///< by slot of the flow
  bool isClosed_ = false;
  InboundCounts counts_;
};

}  // namespace braid
