#include "tunnel/stream/trace.h"

namespace braid {

const char* traceName(TraceEvent::Kind kind) {
  switch (kind) {
    case TraceEvent::Kind::kPacketLost:
      return "recovery:packet_lost";
    case TraceEvent::Kind::kCopySent:
      return "recovery:copy_sent";
    case TraceEvent::Kind::kBlockStarted:
      return "recovery:block_started";
    case TraceEvent::Kind::kParitySent:
      return "recovery:parity_sent";
    case TraceEvent::Kind::kParityReceived:
      return "recovery:parity_received";
    case TraceEvent::Kind::kBlockDecoded:
      return "recovery:block_decoded";
    case TraceEvent::Kind::kPacketRecovered:
      return "recovery:packet_recovered";
  }
  return "?";
}

}  // namespace braid
