#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/field.h"

namespace braid {

/// The ways to wake a sender, or to retransmit for it.
enum class Actuator : uint8_t {
  kPureDupAck,  ///< duplicate ACKs (no SACK negotiated)
  kSackDupAck,  ///< duplicate ACKs with a SACK block over the last segment, after beta (T-RACKs)
  kHole,  ///< duplicate ACKs with SACK blocks around data that never arrived at the gateway, or
          ///< that the tunnel dropped
  kFarReplay,   ///< a segment is sent to the local receiver again
  kNearReplay,  ///< a local sender's segment is sent into the tunnel again
  kSynReplay,   ///< a SYN or SYN-ACK is sent again, to the local host or into the tunnel
};
inline constexpr size_t kActuators = 6;
/// Stable name for metrics ("far_replay").
constexpr const char* actuatorName(Actuator actuator) {
  constexpr std::array<const char*, kActuators> kNames{
      "pure_dup_ack", "sack_dup_ack", "hole", "far_replay", "near_replay", "syn_replay"};
  return kNames[static_cast<size_t>(actuator)];
}

struct ActuatorCounts {
  uint64_t fired = 0, useful = 0, spurious = 0;
};
template <>
inline constexpr auto kFieldsOf<ActuatorCounts> = field::table<ActuatorCounts>(
    field::counter("fired", FieldUnit::kNone, "times the way was used, not packets",
                   &ActuatorCounts::fired),
    field::tally("useful", FieldUnit::kNone, "uses after which the data was acknowledged",
                 &ActuatorCounts::useful),
    field::counter("spurious", FieldUnit::kNone,
                   "uses that were not needed: a D-SACK, a timestamp or an early ACK shows that "
                   "the data had arrived",
                   &ActuatorCounts::spurious));

struct ShimCounters {
  std::array<ActuatorCounts, kActuators> actuators{};
  uint64_t acksSent = 0, acksDropped = 0;
  uint64_t silent = 0, helpless = 0;
  uint64_t foreign = 0;
  uint64_t halfOpen = 0, proven = 0, tableFull = 0;
  uint64_t cacheFull = 0, noBuffer = 0;

  ActuatorCounts& operator[](Actuator a) { return actuators[static_cast<size_t>(a)]; }
  const ActuatorCounts& operator[](Actuator a) const { return actuators[static_cast<size_t>(a)]; }
};
template <>
inline constexpr auto kFieldsOf<ShimCounters> = field::table<ShimCounters>(
    field::object("actuators", "the ways to wake a sender, or to do its work",
                  &ShimCounters::actuators),
    field::counter("acks_sent", FieldUnit::kPackets, "duplicate ACKs sent",
                   &ShimCounters::acksSent),
    field::counter("acks_dropped", FieldUnit::kPackets,
                   "duplicate ACKs kept from a sender in recovery (T-RACKs Algorithm 1 line 31)",
                   &ShimCounters::acksDropped),
    field::counter("silent", FieldUnit::kNone,
                   "times beta had passed and the tunnel still carried the data",
                   &ShimCounters::silent),
    field::counter("helpless", FieldUnit::kNone,
                   "times nothing that could be said would wake the sender",
                   &ShimCounters::helpless),
    field::counter("foreign_packets", FieldUnit::kPackets,
                   "packets of a known flow outside its windows", &ShimCounters::foreign),
    field::counter("half_open_flows", FieldUnit::kNone, "flows first seen",
                   &ShimCounters::halfOpen),
    field::counter("proven_flows", FieldUnit::kNone, "flows that proved to have two ends",
                   &ShimCounters::proven),
    field::counter(
        "table_full", FieldUnit::kNone,
        "flows that proved to have two ends and found no room; not among the proven ones",
        &ShimCounters::tableFull),
    field::counter("cache_full", FieldUnit::kPackets, "packets not kept because the cache was full",
                   &ShimCounters::cacheFull),
    field::counter("no_buffer", FieldUnit::kPackets,
                   "packets not sent because no packet buffer was free", &ShimCounters::noBuffer));

}  // namespace braid
