#pragma once

#include <cstdint>

#include "base/intrusive_list.h"
#include "base/packet.h"
#include "base/time.h"
#include "tunnel/lane/delivery.h"
#include "tunnel/wire/frames.h"
#include "tunnel/wire/numbers.h"
#include "tunnel/wire/stream_frames.h"

namespace braid {

class Flow;

/// One unit of a lane on its way, from its first datagram until no sent datagram remembers it: an inner packet, or a
/// range of a stream's bytes.
///
/// The data ledger (data_ledger.h) alone makes and writes a datum. Everybody else has a `const Datum*`, reads it,
/// and tells the ledger what happened to it.
struct Datum {
  Packet packet;                 ///< the unit; empty once delivered or given up
  Flow* flow = nullptr;          ///< the flow that it is of; nullptr once delivered or given up
  Dsn dsn{};                     ///< its number in `slot`; of a stream's range, the offset
  PacketNumber pn{};             ///< of the datagram that it last went in, on `subflow`
  Time firstSent;                ///< when its first datagram left
  Time answerDue = Time::min();  ///< when the peer's word on its copy or parity should be here
  uint32_t refs = 0;             ///< sent datagrams that remember it, and the repair queue
  FlowNumber slot{};             ///< flow number on the wire
  uint16_t copies = 0;           ///< datagrams in flight that carry it, on subflows that are not silent
  SubflowId subflow{};           ///< the subflow that it last went on
  Delivery delivery = Delivery::kTimely;  ///< of its flow, when it was first sent
  bool done = false;                      ///< delivered or given up
  bool delivered = false;                 ///< done, and not given up
  bool queued = false;                    ///< waits in the repair queue
  bool moved : 1 = false;                 ///< the subflow that it last went on has fallen silent
  bool copied : 1 = false;  ///< a copy went out before it was known lost, or none may: no second one does
  bool coded : 1 = false;   ///< it is in a coding block, or may be in none
  uint8_t frame = 0;        ///< of a stream's range: the type of its frame; 0: DATA
  ListLink<Datum> ofFlow;   ///< among the data of its flow that is not done
  ListLink<Datum> repair;   ///< in the repair queue
};

/// What stands before the packet on the wire: kDataFrameHeader bytes.
inline void writeUnitHeader(const Datum& datum, uint8_t* out) {
  if (datum.frame == 0) return writeDataHeader(datum.slot, datum.dsn, datum.packet.size(), out);
  writeStreamHeader(datum.frame, datum.dsn.value(), datum.packet.size(), out);
}

}  // namespace braid
