#pragma once

// The objects that both directions of a session, Outbound and Inbound, work with.

#include "base/packet.h"
#include "tunnel/fec/fec_receiver.h"
#include "tunnel/fec/recovery_driver.h"
#include "tunnel/queue/data_tracker.h"
#include "tunnel/queue/drr.h"
#include "tunnel/queue/flow_table.h"
#include "tunnel/queue/packet_queue.h"
#include "tunnel/session/control_frames.h"
#include "tunnel/session/key_renewal.h"
#include "tunnel/session/path_manager.h"
#include "tunnel/session/peer_events.h"
#include "tunnel/session/session_options.h"
#include "tunnel/stream/session_streams.h"
#include "tunnel/subflow/datagram_builder.h"
#include "tunnel/subflow/subflow.h"
#include "tunnel/wire/header.h"
#include "tunnel/wire/key_schedule.h"

namespace braid {

/// What a session has to send: packets and streams, and the scheduler that decides whose turn it
/// is. The arguments passed by reference must outlive this object.
struct SessionQueues {
  /// `hashKey`: key of the flow table's hash. `session`: the session's id.
  SessionQueues(const SessionOptions& options, PacketPool& pool, DataTracker& dataTracker,
                SessionOwner& owner, const RecoveryTrace& trace, uint64_t hashKey, uint32_t session,
                KeySchedule::Role role)
      : flows(innerFlowOptions(options), hashKey),
        packets(packetLaneOptions(options), flows, round, &owner, &pool.budget(PacketUse::kQueued)),
        streams({options.streams, pool, dataTracker, round, trace, owner.streamRations(), session,
                 role == KeySchedule::Role::kInitiator}) {}

  InnerFlowTable flows;  ///< of `packets`
  DrrScheduler round;    ///< schedules packets and streams together
  PacketQueues packets;
  SessionStreams streams;
};

/// Each referenced object belongs to the session and outlives Outbound and Inbound.
struct SessionParts {
  const SessionOptions& options;
  PacketPool& pool;
  DatagramSealer& sealer;
  PathManager& paths;
  SubflowSet& subflows;  ///< those of `paths`
  ControlFrames& controls;
  KeyUpdate& renewal;
  DataTracker& dataTracker;
  DrrScheduler& round;
  PacketQueues& packets;
  SessionStreams& streams;
  ProactiveRecovery& proactiveRecovery;
  FecReceiver& receiver;
  SessionOwner& owner;
  ProtocolVersion version = kProtocolVersions.front();  ///< that this session speaks
};

}  // namespace braid
