#pragma once

#include <cstdint>

#include "base/packet.h"
#include "tunnel/queue/data_tracker.h"
#include "tunnel/queue/drr.h"
#include "tunnel/queue/flow_table.h"
#include "tunnel/queue/packet_queue.h"
#include "tunnel/session/session_options.h"
#include "tunnel/stream/session_streams.h"

namespace braid {

/// What a session has to send: packets and streams, and the scheduler that decides whose turn it
/// is.
struct SessionQueues {
  /// `hashKey`: key of the flow table's hash. `options`, `events` and the objects behind
  /// `streams` must outlive this object.
  SessionQueues(const SessionOptions& options, const StreamContext& streamContext,
                PacketEvents& events, uint64_t hashKey)
      : flows(innerFlowOptions(options), hashKey),
        packets(packetLaneOptions(options), flows, round, &events,
                &streamContext.pool.budget(PacketUse::kQueued)),
        streams(streamContext, round) {}

  InnerFlowTable flows;  ///< of `packets`
  DrrScheduler round;    ///< schedules packets and streams together
  PacketQueues packets;
  SessionStreams streams;
};

}  // namespace braid
