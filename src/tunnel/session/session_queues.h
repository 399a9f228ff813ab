#pragma once

#include <cstdint>

#include "tunnel/queue/drr.h"
#include "tunnel/queue/flow_table.h"
#include "tunnel/queue/packet_events.h"
#include "tunnel/queue/packet_queue.h"
#include "tunnel/session/session_options.h"
#include "tunnel/stream/session_streams.h"

namespace braid {

/// The new data of a session, that is, data that was never sent: inner packets in a queue for each
/// flow, bytes of streams in a buffer for each stream, and the scheduler that decides which of
/// these sends next. Session owns it. Forwarder adds packets, the driver adds bytes to streams, and
/// DataSender takes both.
struct SessionQueues {
  /// `hashKey`: random key of the flow table's hash, so that no host can choose flows that collide.
  /// `options`, `events` and the objects behind `streamContext` must outlive this object.
  SessionQueues(const SessionOptions& options, const StreamContext& streamContext,
                PacketEvents& events, uint64_t hashKey)
      : flows(innerFlowOptions(options), hashKey),
        packets(packetLaneOptions(options), flows, drr, &events,
                &streamContext.pool.quota(PacketUse::kQueued)),
        streams(streamContext, drr) {}

  InnerFlowTable flows;  ///< the flows of `packets`
  DrrScheduler drr;      ///< schedules the flows and the streams together
  PacketQueues packets;
  SessionStreams streams;
};

}  // namespace braid
