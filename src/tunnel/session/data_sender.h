#pragma once

// Fills a session's datagrams with data: repairs and new data.
//
// Data flow. In come lost data (Repairs, which asks the DataTracker) and new data (the DRR
// scheduler chooses the flow, the path scheduler the path). pollRepair() and pollNew() begin a
// datagram of their own. fill() adds to a datagram that another part of the session has begun what
// would be sent on its path anyway.
//
// Life. DataSender lives as long as its session. It holds no packet between two calls: data that
// finds no buffer or no path stays in its queue.
//
// Invariants. Known losses are repaired before new data is sent. New data is sent only on a path
// whose window is open, with two exceptions: small flows, and the protection of such a flow in its
// turn, have a priority allowance (SendAdmission::isOpenAhead); and while no path is usable, new
// data is sent together with the PING that asks whether the peer answers. A packet waits for a
// better path only as long as the path scheduler says.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/path/path_scheduler.h"
#include "tunnel/fec/recovery_driver.h"
#include "tunnel/queue/counts.h"
#include "tunnel/queue/drr.h"
#include "tunnel/queue/flow_table.h"
#include "tunnel/queue/packet_events.h"
#include "tunnel/queue/packet_queue.h"
#include "tunnel/session/path_manager.h"
#include "tunnel/session/repairs.h"
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
                &streamContext.pool.quota(PacketUse::kQueued)),
        streams(streamContext, round) {}

  InnerFlowTable flows;  ///< of `packets`
  DrrScheduler round;    ///< schedules packets and streams together
  PacketQueues packets;
  SessionStreams streams;
};

class DataSender {
 public:
  /// All arguments must outlive this object.
  DataSender(const SessionOptions& options, PacketPool& pool, DatagramSealer& sealer,
             PathManager& paths, DataTracker& dataTracker, SessionQueues& queues,
             ProactiveRecovery& proactiveRecovery, PacketEvents& events);

  /// The options have changed.
  void setTunables();

  /// Result of an attempt to send new data.
  enum class Outcome : uint8_t {
    kSent,
    kNothing,  ///< nothing to send on the open paths: what is left waits for a better path
    kNoPath,   ///< data is left, and no path is open
    kLater,    ///< data is left, but no buffer is free, or no path is open for protection
  };
  /// The next datagram with lost data, filled up with more data; false when there is none, or no
  /// buffer for it.
  bool pollRepair(Datagram& out, Time now);
  /// The next datagram with new data, or of a short flow's protection in its turn.
  Outcome pollNew(Datagram& out, Time now);
  /// Adds repairs and new data to a datagram.
  void fill(DatagramBuilder& build, Time now);

  /// New data waits.
  bool hasNew() const { return round_.bytes() > 0; }
  /// Data or protection waits for a path or for its turn.
  bool hasWaiting() const;
  /// When a poll may have a datagram although nothing arrives meanwhile. The subflows' own
  /// deadlines are not included.
  Time nextDeadline(Time now) const;
  const DropCounts& drops() const { return drops_; }
  const OutboundCounts& counts() const { return counts_; }

 private:
  Outcome offer(Datagram& out, Time now);
  bool openOverflow(Time now);
  bool mayTakeTurn(const Flow& flow, Time now) const;
  bool takeTurn(DrrCursor& round, Flow& flow, Datagram& out, Time now);
  bool send(Subflow& subflow, DrrCursor& round, Datagram& out, Time now);
  bool dropTooLarge(DrrCursor& round, const Packet& unit);
  bool cutToFit(const Candidate& offer);
  void lookAtPaths(Time now);
  std::optional<size_t> choosePath(const Candidate& offer, Time now);

  /// `chosen`: the path scheduler has already chosen this path for the unit that `round` offers.
  void fill(DatagramBuilder& build, DrrCursor& round, bool chosen, Time now);
  void addNew(DatagramBuilder& build, DrrCursor& round, Flow& flow, Time now);
  void addRepair(DatagramBuilder& build, UnitRef unit, Time now);

  const SessionOptions& options_;
  PacketPool& pool_;
  DatagramSealer& sealer_;
  PathRoles& roles_;
  SubflowSet& subflows_;
  DataTracker& dataTracker_;
  SessionQueues& queues_;
  DrrScheduler& round_;  ///< of queues_
  ProactiveRecovery& proactiveRecovery_;
  PacketEvents& events_;
  Repairs repairs_;
  std::unique_ptr<PathScheduler> scheduler_;
  std::string schedulerName_;
  std::vector<PathView> views_;    ///< result of lookAtPaths(), by position
  std::vector<PathView> fitting_;  ///< scratch memory of choosePath()
  /// When to ask the path scheduler again for a flow that waits for a better path.
  Time patienceEnd_ = kNever;
  bool smallWaits_ = false;  ///< new data waits that has a priority allowance
  DropCounts drops_{};
  OutboundCounts counts_;
};

}  // namespace braid
