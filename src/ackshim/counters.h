#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace braid {

/// The ways to wake a sender, or to do its work.
enum class Actuator : uint8_t {
  kPureDupAck,  ///< duplicate ACKs (no SACK negotiated)
  kSackDupAck,  ///< duplicate ACKs with a SACK block over the last segment, after beta
  kHole,        ///< duplicate ACKs for what never came, or what the tunnel dropped, with what did come
  kFarReplay,   ///< a segment again to the local receiver
  kNearReplay,  ///< a local sender's segment again into the tunnel
  kSynReplay,   ///< a SYN or SYN-ACK again to the local host
};
inline constexpr size_t kActuators = 6;
/// Stable name for metrics ("far_replay").
constexpr const char* actuatorName(Actuator actuator) {
  constexpr std::array<const char*, kActuators> kNames{"pure_dup_ack", "sack_dup_ack", "hole",
                                                       "far_replay",   "near_replay",  "syn_replay"};
  return kNames[static_cast<size_t>(actuator)];
}

struct ActuatorCounts {
  uint64_t fired = 0;   ///< times it was used (not packets)
  uint64_t useful = 0;  ///< and the data it was about was acknowledged then
  uint64_t spurious =
      0;  ///< and a D-SACK, a timestamp or an ACK that came too early shows that it had arrived
};

struct ShimCounters {
  std::array<ActuatorCounts, kActuators> actuators{};
  uint64_t acksSent = 0;     ///< packets of the duplicate-ACK actuators
  uint64_t acksDropped = 0;  ///< duplicates kept from a sender in recovery (Algorithm 1 line 31)
  uint64_t silent = 0;       ///< times beta had passed and the tunnel still carried the data
  uint64_t helpless = 0;     ///< times nothing that could be said would wake the sender
  uint64_t foreign = 0;      ///< packets of a known flow outside its windows
  uint64_t halfOpen = 0;     ///< flows first seen
  uint64_t proven = 0;       ///< of these, flows that proved to have two ends
  uint64_t tableFull = 0;    ///< of these, flows that found no room
  uint64_t cacheFull = 0;    ///< packets not kept because the cache was full
  uint64_t noBuffer = 0;     ///< packets not sent because the pool was exhausted

  ActuatorCounts& operator[](Actuator a) { return actuators[static_cast<size_t>(a)]; }
  const ActuatorCounts& operator[](Actuator a) const { return actuators[static_cast<size_t>(a)]; }
};

}  // namespace braid
