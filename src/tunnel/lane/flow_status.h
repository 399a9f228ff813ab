#pragma once

#include <cstdint>
#include <string>

#include "base/field.h"

namespace braid {

/// What an inner flow's queue counts.
struct FlowCounts {
  uint64_t packets = 0, bytes = 0, drops = 0, marks = 0;
};
template <>
inline constexpr auto kFieldsOf<FlowCounts> = field::table<FlowCounts>(
    field::counter("packets", FieldUnit::kPackets, "packets handed out for sending", &FlowCounts::packets),
    field::counter("bytes", FieldUnit::kBytes, "packets handed out for sending, in bytes",
                   &FlowCounts::bytes),
    field::counter("drops", FieldUnit::kPackets, "packets dropped by CoDel and at `queue-limit`",
                   &FlowCounts::drops),
    field::counter("marks", FieldUnit::kPackets, "packets marked by CoDel (ECN)", &FlowCounts::marks));

/// One inner flow, for the operator.
struct FlowStatus : FlowCounts {
  std::string name, delivery;
  uint64_t queuedBytes = 0;
  uint64_t unacked = 0;
};
template <>
inline constexpr auto kFieldsOf<FlowStatus> = field::table<FlowStatus>(
    field::base<FlowCounts>(),
    field::text("name", "protocol, source and destination: `tcp 10.0.0.1:443 > 10.0.0.2:5000`",
                &FlowStatus::name),
    field::text("delivery", "`reliable` (TCP), `ordered` or `timely`", &FlowStatus::delivery),
    field::gauge("queued_bytes", FieldUnit::kBytes, "what waits to be sent", &FlowStatus::queuedBytes),
    field::gauge("unacked_packets", FieldUnit::kPackets, "packets sent and not known delivered",
                 &FlowStatus::unacked));

}  // namespace braid
