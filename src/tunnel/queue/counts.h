#pragma once

#include <cstdint>
#include <string>

#include "base/field.h"
#include "base/time.h"

namespace braid {

/// What an inner flow's queue counts.
struct FlowCounts {
  uint64_t packets = 0, bytes = 0, drops = 0, marks = 0;
};
template <>
inline constexpr auto kFieldsOf<FlowCounts> = field::table<FlowCounts>(
    field::counter("packets", FieldUnit::kPackets, "packets handed out for sending",
                   &FlowCounts::packets),
    field::counter("bytes", FieldUnit::kBytes, "packets handed out for sending, in bytes",
                   &FlowCounts::bytes),
    field::counter("drops", FieldUnit::kPackets, "packets dropped by CoDel and at `queue-limit`",
                   &FlowCounts::drops),
    field::counter("marks", FieldUnit::kPackets, "packets marked by CoDel (ECN)",
                   &FlowCounts::marks));

/// One inner flow, as shown to the operator.
struct FlowStatus : FlowCounts {
  std::string name, delivery;
  uint64_t queuedBytes = 0;
  uint64_t unacked = 0;
  Duration idle{};
};
template <>
inline constexpr auto kFieldsOf<FlowStatus> = field::table<FlowStatus>(
    field::base<FlowCounts>(),
    field::text("name", "protocol, source and destination: `tcp 10.0.0.1:443 > 10.0.0.2:5000`",
                &FlowStatus::name),
    field::text("delivery", "`reliable` (TCP), `ordered` or `timely`", &FlowStatus::delivery),
    field::gauge("queued_bytes", FieldUnit::kBytes, "what waits to be sent",
                 &FlowStatus::queuedBytes),
    field::gauge("unacked_packets", FieldUnit::kPackets, "packets sent and not known delivered",
                 &FlowStatus::unacked),
    field::gauge("idle_s", FieldUnit::kSeconds,
                 "since its last packet; 0: something of it is under way", &FlowStatus::idle));

/// The inner packets that a session sends.
struct OutboundCounts {
  uint64_t innerSentPackets = 0, innerSentBytes = 0;
  uint64_t retransmitted = 0;
  double retransmitDelay = 0;
  uint64_t undelivered = 0;
};
template <>
inline constexpr auto kFieldsOf<OutboundCounts> = field::table<OutboundCounts>(
    field::counter("inner_sent_packets", FieldUnit::kPackets,
                   "inner packets sent, each counted once", &OutboundCounts::innerSentPackets),
    field::counter("inner_sent_bytes", FieldUnit::kBytes,
                   "inner packets sent, each counted once, in bytes",
                   &OutboundCounts::innerSentBytes),
    field::counter("retransmitted", FieldUnit::kPackets,
                   "inner packets sent again, each time that they were",
                   &OutboundCounts::retransmitted),
    field::counter("retransmit_delay_ms", FieldUnit::kMilliseconds,
                   "how much later they were sent again than at first, all of them added up",
                   &OutboundCounts::retransmitDelay),
    field::counter("undelivered", FieldUnit::kPackets,
                   "inner packets sent and never delivered: given up after their time, or with no "
                   "path left",
                   &OutboundCounts::undelivered));

/// The inner packets that a session receives.
struct InboundCounts {
  uint64_t innerReceivedPackets = 0, innerReceivedBytes = 0;
};
template <>
inline constexpr auto kFieldsOf<InboundCounts> = field::table<InboundCounts>(
    field::counter("inner_received_packets", FieldUnit::kPackets,
                   "inner packets received, each counted once",
                   &InboundCounts::innerReceivedPackets),
    field::counter("inner_received_bytes", FieldUnit::kBytes,
                   "inner packets received, each counted once, in bytes",
                   &InboundCounts::innerReceivedBytes));

/// What a session carries for hosts: the sums of what its packet lane and its stream lane count.
struct CarriedCounts {
  uint64_t sentBytes = 0, receivedBytes = 0;
};
template <>
inline constexpr auto kFieldsOf<CarriedCounts> = field::table<CarriedCounts>(
    field::counter("sent_bytes", FieldUnit::kBytes,
                   "carried to the peer: inner packets and bytes of streams, each counted once",
                   &CarriedCounts::sentBytes),
    field::counter("received_bytes", FieldUnit::kBytes,
                   "carried from the peer: inner packets and bytes of streams",
                   &CarriedCounts::receivedBytes));

}  // namespace braid
