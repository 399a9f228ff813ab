#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/field.h"
#include "base/time.h"
#include "coding/block_decoder.h"
#include "tunnel/queue/counts.h"
#include "tunnel/stream/stream_io.h"
#include "tunnel/subflow/subflow_status.h"

namespace braid {

/// Statistics of a session's proactive recovery.
struct RecoveryStatus : BlockDecoder::Counts {
  std::string recovery;
  uint64_t blocks = 0, paritiesReceived = 0;
};
template <>
inline constexpr auto kFieldsOf<RecoveryStatus> = field::table<RecoveryStatus>(
    field::base<BlockDecoder::Counts>(),
    field::text("recovery", "policy of flows in no class", &RecoveryStatus::recovery),
    field::counter("blocks", FieldUnit::kNone, "coding blocks begun, as sender",
                   &RecoveryStatus::blocks),
    field::counter("parities_received", FieldUnit::kPackets, "parities that came, as receiver",
                   &RecoveryStatus::paritiesReceived));

/// Status of one session, for the operator.
struct SessionStatus : CarriedCounts, OutboundCounts, InboundCounts, RecoveryStatus, StreamCounts {
  Duration age{};
  Duration keyAge{};
  unsigned keyGeneration = 0, keyEpoch = 0;
  std::string cipher;
  unsigned version = 0;
  size_t innerMtu = 0;
  uint64_t heldPackets = 0, heldBytes = 0;
  uint64_t orderMemory = 0, decodeMemory = 0;
  uint64_t suppressions = 0;
  std::vector<SubflowStatus> subflows;
  size_t flowCount = 0;
  std::vector<FlowStatus> flows;  ///< at most as many as were requested
  size_t streamCount = 0;
  uint64_t streamsHeldBytes = 0;
  std::vector<StreamStatus> streams;  ///< at most as many as flows were requested
};
template <>
inline constexpr auto kFieldsOf<SessionStatus> = field::table<SessionStatus>(
    field::base<CarriedCounts>(), field::base<OutboundCounts>(), field::base<InboundCounts>(),
    field::base<RecoveryStatus>(), field::base<StreamCounts>(),
    field::gauge("age_s", FieldUnit::kSeconds, "age of the session", &SessionStatus::age),
    field::gauge("key_age_s", FieldUnit::kSeconds, "since the last handshake gave the session keys",
                 &SessionStatus::keyAge),
    field::gauge("key_generation", FieldUnit::kNone,
                 "how often a fresh handshake replaced the keys", &SessionStatus::keyGeneration),
    field::gauge("key_epoch", FieldUnit::kNone, "how often the keys were renewed without one since",
                 &SessionStatus::keyEpoch),
    field::text("cipher", "AEAD of the session", &SessionStatus::cipher),
    field::gauge("protocol_version", FieldUnit::kNone,
                 "version of the protocol that both sides speak", &SessionStatus::version),
    field::gauge("inner_mtu_bytes", FieldUnit::kBytes, "largest inner packet",
                 &SessionStatus::innerMtu),
    field::gauge("held_packets", FieldUnit::kPackets, "inner packets that wait for order",
                 &SessionStatus::heldPackets),
    field::gauge("held_bytes", FieldUnit::kBytes, "inner packets that wait for order, in bytes",
                 &SessionStatus::heldBytes),
    field::gauge("order_memory_bytes", FieldUnit::kBytes,
                 "memory for the order of the peer's flows, without the packets",
                 &SessionStatus::orderMemory),
    field::gauge("decode_memory_bytes", FieldUnit::kBytes, "memory for what is kept to decode",
                 &SessionStatus::decodeMemory),
    field::counter("suppressions", FieldUnit::kNone, "how often AMP sent over one subflow only",
                   &SessionStatus::suppressions),
    field::gauge("subflow_count", FieldUnit::kNone, "subflows", &SessionStatus::subflows),
    field::gauge("flow_count", FieldUnit::kNone, "inner flows that this gateway sends",
                 &SessionStatus::flowCount),
    field::unlisted(&SessionStatus::flows),
    field::gauge("stream_count", FieldUnit::kNone, "streams that are open",
                 &SessionStatus::streamCount),
    field::gauge("streams_held_bytes", FieldUnit::kBytes,
                 "memory of what waits for the readers of streams: whole buffers, and what keeps "
                 "them in order",
                 &SessionStatus::streamsHeldBytes),
    field::unlisted(&SessionStatus::streams));

}  // namespace braid
