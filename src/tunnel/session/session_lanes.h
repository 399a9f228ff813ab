#pragma once

#include "tunnel/lane/data_ledger.h"
#include "tunnel/lane/fair_round.h"
#include "tunnel/lane/inner_flows.h"
#include "tunnel/lane/packet_lane.h"
#include "tunnel/lane/stream_lane.h"
#include "tunnel/session/session_options.h"
#include "tunnel/session/session_owner.h"
#include "tunnel/wire/key_schedule.h"

namespace braid {

/// What a session has to send: its lanes, and whose turn it is. References must outlive it.
struct SessionLanes {
  /// `hashKey` of the table of flows, `session`: its id.
  SessionLanes(const SessionOptions& options, PacketPool& pool, DataLedger& ledger, SessionOwner& owner,
               const RecoveryTrace& trace, uint64_t hashKey, uint32_t session, KeySchedule::Role role)
      : flows(innerFlowOptions(options), hashKey),
        packets(packetLaneOptions(options), flows, round, &owner, &pool.budget(PacketUse::kQueued)),
        streams({options.streams, pool, ledger, round, trace, owner.streamRations(), session,
                 role == KeySchedule::Role::kInitiator}) {}

  InnerFlows flows;  ///< of the packet lane
  FairRound round;   ///< of all lanes
  PacketLane packets;
  StreamLane streams;
};

}  // namespace braid
