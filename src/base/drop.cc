#include "base/drop.h"

namespace braid {

const char* dropName(Drop cause) {
  switch (cause) {
    case Drop::kRuntDatagram:
      return "runt_datagram";
    case Drop::kUnknownType:
      return "unknown_type";
    case Drop::kUnknownVersion:
      return "unknown_version";
    case Drop::kUnknownSession:
      return "unknown_session";
    case Drop::kUnknownSubflow:
      return "unknown_subflow";
    case Drop::kBadSeal:
      return "bad_seal";
    case Drop::kReplay:
      return "replay";
    case Drop::kBadFrame:
      return "bad_frame";
    case Drop::kHandshakeLimit:
      return "handshake_limit";
    case Drop::kHandshakeGarbage:
      return "handshake_garbage";
    case Drop::kBadInnerPacket:
      return "bad_inner_packet";
    case Drop::kNoPeer:
      return "no_peer";
    case Drop::kPeerDown:
      return "peer_down";
    case Drop::kForeignSource:
      return "foreign_source";
    case Drop::kTooBig:
      return "too_big";
    case Drop::kQueueFull:
      return "queue_full";
    case Drop::kAqm:
      return "aqm";
    case Drop::kFlowTableFull:
      return "flow_table_full";
    case Drop::kExpired:
      return "expired";
    case Drop::kLostDatagram:
      return "lost_datagram";
    case Drop::kHoldOverflow:
      return "hold_overflow";
    case Drop::kDuplicate:
      return "duplicate";
    case Drop::kNoBuffer:
      return "no_buffer";
    case Drop::kBadParity:
      return "bad_parity";
    case Drop::kCount:
      break;
  }
  return "?";
}

}  // namespace braid
