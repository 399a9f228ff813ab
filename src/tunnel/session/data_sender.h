#pragma once

// Puts a session's data into datagrams: repairs and new data. (outbound.h has the terms, and says
// when in the order of service this is asked.) Session owns one DataSender; Outbound makes all
// calls but setTunables().
//
//     lost:  DataTracker   -> Repairs (which unit, on which path)                  -> datagram
//     new:   SessionQueues -> DrrScheduler (which flow) -> PathScheduler (which path) -> datagram
//                                                       `-> DataTracker, which has it from now on
//
// pollRepair() and pollNew() begin a datagram of their own. fill() adds to a datagram that was
// begun for another purpose what would be sent on its path anyway. DataSender holds no packet
// between two calls: data that finds no buffer or no path stays where it is.
//
// Invariants:
//
// - Known losses are repaired before new data is sent on the same path.
// - New data is sent only on a path that is open, with two exceptions. Small flows (a request, a
//   call: FlowBurst::isSmall()) and the protection of such a flow have a priority allowance of a
//   few datagrams beyond window and pacer (SendAdmission::isOpenAhead). And while no path is
//   usable, new data is sent with the PING that asks whether the peer answers.
// - A metered path takes new data only while the others cannot carry it (overflow, PathRoles).
// - A unit waits for a better path only as long as the path scheduler says (FlowPatience).
// - A unit that fits no usable path never blocks what is behind it: a packet is dropped and
//   reported (PacketEvent::Kind::kTooLarge), a piece of a stream is cut.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scheduler/path/path_scheduler.h"
#include "tunnel/fec/recovery_driver.h"
#include "tunnel/queue/counts.h"
#include "tunnel/queue/drr.h"
#include "tunnel/queue/packet_events.h"
#include "tunnel/session/path_manager.h"
#include "tunnel/session/repairs.h"
#include "tunnel/session/session_options.h"
#include "tunnel/session/session_queues.h"

namespace braid {

class DataSender {
 public:
  /// The other parts of the session; all must outlive this object.
  DataSender(const SessionOptions& options, PacketPool& pool, DatagramSealer& sealer,
             PathManager& paths, DataTracker& dataTracker, SessionQueues& queues,
             ProactiveRecovery& proactiveRecovery, PacketEvents& events);

  /// The options have changed; a new path scheduler is made if its name has.
  void setTunables();

  /// Result of pollNew().
  enum class Outcome : uint8_t {
    kSent,     ///< `out` is the next datagram
    kNothing,  ///< the open paths have nothing to send: what is left, if any, waits for a better
               ///< one
    kNoPath,   ///< data is left, and no path is open for it
    /// Data is left, but a buffer, or memory to track the data, is missing; or a flow's protection
    /// has its turn and finds no open path.
    kLater,
  };
  /// The next datagram with at least one repair. False when no lost unit may be sent now, or the
  /// pool has no buffer.
  bool pollRepair(Datagram& out, Time now);
  /// The next datagram with new data, or with the protection of a short flow that has its turn.
  Outcome pollNew(Datagram& out, Time now);
  /// Adds repairs and new data to a datagram, until it is full or nothing more belongs on its path.
  /// The caller has checked that its path is open, or that no path is usable.
  void fill(DatagramBuilder& build, Time now);

  /// New data waits.
  bool hasNew() const { return drr_.bytes() > 0; }
  /// Anything waits for a path or for its turn: new data, repairs, duplicates, protection of short
  /// flows.
  bool hasWaiting() const;
  /// As Outbound::nextDeadline(), which adds the load test.
  Time nextDeadline(Time now) const;
  /// Packets that were dropped here, since the session began.
  const DropCounts& drops() const { return drops_; }
  OutboundCounts counts() const;

 private:
  Outcome offerNew(Datagram& out, Time now);
  bool addOverflowPaths(Time now);
  bool maySendProtection(const Flow& flow, Time now) const;
  bool sendProtection(DrrCursor& cursor, Flow& flow, Datagram& out, Time now);
  bool send(Subflow& subflow, DrrCursor& cursor, Datagram& out, Time now);
  bool dropTooLarge(DrrCursor& cursor, const Packet& unit);
  bool cutToFit(const Candidate& offer);
  void refreshViews(Time now);
  std::optional<size_t> choosePath(const Candidate& offer, Time now);

  /// `chosen`: the path scheduler has already chosen this path for the unit that `cursor` offers.
  void fill(DatagramBuilder& build, DrrCursor& cursor, bool chosen, Time now);
  void addNew(DatagramBuilder& build, DrrCursor& cursor, Flow& flow, Time now);
  void addRepair(DatagramBuilder& build, UnitRef unit, Time now);

  const SessionOptions& options_;
  PacketPool& pool_;
  DatagramSealer& sealer_;
  PathRoles& roles_;
  SubflowSet& subflows_;
  DataTracker& dataTracker_;
  SessionQueues& queues_;
  DrrScheduler& drr_;  ///< of queues_
  ProactiveRecovery& proactiveRecovery_;
  PacketEvents& events_;
  Repairs repairs_;
  std::unique_ptr<PathScheduler> scheduler_;
  std::string schedulerName_;
  std::vector<PathView> views_;    ///< the paths as of refreshViews(), by position in subflows_
  std::vector<PathView> fitting_;  ///< scratch memory of choosePath()
  // As of the last pollNew():
  Time askSchedulerAt_ = kNever;  ///< when a flow that waits for a better path is offered again
  bool priorityWaits_ = false;    ///< data waits that has the priority allowance
  DropCounts drops_{};
  OutboundCounts counts_;
};

}  // namespace braid
