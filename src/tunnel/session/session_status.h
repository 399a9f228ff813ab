#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/field.h"
#include "base/time.h"
#include "coding/block_decoder.h"
#include "tunnel/lane/flow_status.h"
#include "tunnel/subflow/subflow_status.h"

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
    field::counter("inner_received_packets", FieldUnit::kPackets,
                   "inner packets received, duplicates included", &InboundCounts::innerReceivedPackets),
    field::counter("inner_received_bytes", FieldUnit::kBytes,
                   "inner packets received, duplicates included, in bytes",
                   &InboundCounts::innerReceivedBytes));

/// Proactive recovery of a session.
struct RecoveryStatus : BlockDecoder::Counts {
  std::string recovery;
  uint64_t blocks = 0, paritiesReceived = 0;
};
template <>
inline constexpr auto kFieldsOf<RecoveryStatus> = field::table<RecoveryStatus>(
    field::base<BlockDecoder::Counts>(),
    field::text("recovery", "policy of flows in no class", &RecoveryStatus::recovery),
    field::counter("blocks", FieldUnit::kNone, "coding blocks begun, as sender", &RecoveryStatus::blocks),
    field::counter("parities_received", FieldUnit::kPackets, "parities that came, as receiver",
                   &RecoveryStatus::paritiesReceived));

/// One session, for the operator.
struct SessionStatus : OutboundCounts, InboundCounts, RecoveryStatus {
  Duration age{};
  unsigned keyEpoch = 0;
  std::string cipher;
  size_t innerMtu = 0;
  uint64_t heldPackets = 0, heldBytes = 0;
  uint64_t suppressions = 0;
  std::vector<SubflowStatus> subflows;
  std::vector<FlowStatus> flows;
};
template <>
inline constexpr auto kFieldsOf<SessionStatus> = field::table<SessionStatus>(
    field::base<OutboundCounts>(), field::base<InboundCounts>(), field::base<RecoveryStatus>(),
    field::gauge("age_s", FieldUnit::kSeconds, "age of the session", &SessionStatus::age),
    field::gauge("key_epoch", FieldUnit::kNone, "how often the keys were renewed", &SessionStatus::keyEpoch),
    field::text("cipher", "AEAD of the session", &SessionStatus::cipher),
    field::gauge("inner_mtu_bytes", FieldUnit::kBytes, "largest inner packet", &SessionStatus::innerMtu),
    field::gauge("held_packets", FieldUnit::kPackets, "inner packets that wait for order",
                 &SessionStatus::heldPackets),
    field::gauge("held_bytes", FieldUnit::kBytes, "inner packets that wait for order, in bytes",
                 &SessionStatus::heldBytes),
    field::counter("suppressions", FieldUnit::kNone, "how often AMP sent over one subflow only",
                   &SessionStatus::suppressions),
    field::gauge("subflow_count", FieldUnit::kNone, "subflows", &SessionStatus::subflows),
    field::gauge("flow_count", FieldUnit::kNone, "inner flows that this gateway sends",
                 &SessionStatus::flows));

}  // namespace braid
