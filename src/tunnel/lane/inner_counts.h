#pragma once

#include <cstdint>

#include "base/field.h"

namespace braid {

/// The inner packets that a session sends.
struct OutboundCounts {
  uint64_t innerSentPackets = 0, innerSentBytes = 0;
  uint64_t retransmitted = 0;
};
template <>
inline constexpr auto kFieldsOf<OutboundCounts> = field::table<OutboundCounts>(
    field::counter("inner_sent_packets", FieldUnit::kPackets, "inner packets sent, each counted once",
                   &OutboundCounts::innerSentPackets),
    field::counter("inner_sent_bytes", FieldUnit::kBytes, "inner packets sent, each counted once, in bytes",
                   &OutboundCounts::innerSentBytes),
    field::counter("retransmitted", FieldUnit::kPackets, "inner packets sent again",
                   &OutboundCounts::retransmitted));

/// And those that it receives.
struct InboundCounts {
  uint64_t innerReceivedPackets = 0, innerReceivedBytes = 0;
};
template <>
inline constexpr auto kFieldsOf<InboundCounts> = field::table<InboundCounts>(
    field::counter("inner_received_packets", FieldUnit::kPackets, "inner packets received, each counted once",
                   &InboundCounts::innerReceivedPackets),
    field::counter("inner_received_bytes", FieldUnit::kBytes,
                   "inner packets received, each counted once, in bytes",
                   &InboundCounts::innerReceivedBytes));

/// What a session carries for hosts, both lanes together: the sums of what packets and streams count.
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
