#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/field.h"
#include "base/time.h"
#include "inet/addresses.h"

namespace braid {

/// A rule that enables or disables the shim for flows with an endpoint within `prefix` and a port
/// within the range.
struct ShimRule {
  Prefix prefix;  ///< without a family: every address
  uint16_t firstPort = 0;
  uint16_t lastPort = 65535;
  bool enabled = false;
};

/// Everything except the sizes may be changed at any time.
struct AckShimOptions {
  /// Parameters of T-RACKs (section IV-A, Algorithms 1 and 2).
  uint32_t alpha = 10;  ///< round trips without an ACK before the shim speaks; at least 1
  uint8_t phi = 3;      ///< number of duplicate ACKs that makes a sender retransmit
  /// A burst is large, and left alone, once this number of its bytes is acknowledged.
  uint32_t gamma = 100'000;
  Duration rtoMin = 200ms;   ///< the sender's own timer; when it is near, the shim stays silent
  Duration inactivity = 1s;  ///< data after a pause of this length begin a burst

  /// Which ways of waking senders and repairing losses are used.
  bool duplicateAcks = true;  ///< T-RACKs, to local senders
  bool holes = true;          ///< tell a local sender which data was lost on its way to the gateway
  bool replay = true;         ///< send segments again that a local receiver does not acknowledge
  bool cacheOutgoing = false;  ///< keep local senders' segments, too; for a peer without a shim
  /// Use the paper's SACK block 40 bytes above the ACK when the segment boundaries are not known.
  bool sackGap = false;

  /// Parameters that are not from the paper.
  /// Age of a hole at which it counts as a loss; a quarter of the local leg's RTT if that is more.
  Duration reorderAllowance = 1ms;
  /// Added to the local leg's RTT and variation, for the host's own processing time.
  Duration replayMargin = 3ms;
  /// Added to the wait for an ACK that the host may delay: the least delay of Linux. RFC 9293
  /// section 3.8.6.3 allows 500 ms; a host that delays for longer than this value shows by a
  /// D-SACK.
  Duration ackDelay = 40ms;
  Duration idle = 120s;  ///< a flow without packets is forgotten; at most kMaxIdle

  static constexpr Duration kMaxIdle = 30min;

  /// Sizes, fixed at the start.
  size_t maxFlows = 16384;
  size_t maxHalfOpen = 4096;   ///< flows that did not yet prove to have two ends
  size_t cachePackets = 2048;  ///< packets in the cache, at most 65534; 0: no cache
  size_t cachePerFlow = 16;  ///< the last segments cached for each direction of a flow; at most 255

  /// Copies the sizes from `of`.
  void keepSizes(const AckShimOptions& of) {
    maxFlows = of.maxFlows;
    maxHalfOpen = of.maxHalfOpen;
    cachePackets = of.cachePackets;
    cachePerFlow = of.cachePerFlow;
  }

  std::vector<ShimRule> rules;  ///< the first rule that matches decides; without a match: enabled
};

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
