#pragma once

// The subflows of one session: how they are added and closed, and what follows from their states.
//
// Data flow. Subflows are changed by their owner (open, close, setPreference), by the peer (accept,
// and the frames that Inbound passes to them) and by time (onTimer). They report changes as
// SubflowEvents, which are handled here: control frames learn whether they arrived, the roles are
// marked for an update, and the operator and the trace get their lines. The rest of the session
// uses three results: the role of each subflow (PathRoles), since when no subflow is usable, and
// the inner MTU.
//
// Life. The initiator opens a subflow by name. The responder accepts it with its first datagram. A
// subflow stays until the session ends: a closed one keeps its packet numbers and may be opened
// again.
//
// Invariants. The initiator numbers its subflows from 0 on. No side has more than
// SessionOptions::maxSubflows. settle() must follow every call into a subflow that may produce an
// event; the methods of this class call it themselves. The session calls update() at the end of
// everything that may have made a subflow usable or unusable.

#include <cstdint>
#include <memory>
#include <string>

#include "scheduler/rate/controller_group.h"
#include "tunnel/queue/data_tracker.h"
#include "tunnel/queue/trace.h"
#include "tunnel/session/control_frames.h"
#include "tunnel/session/path_roles.h"
#include "tunnel/session/peer_events.h"
#include "tunnel/session/session_options.h"
#include "tunnel/session/session_status.h"
#include "tunnel/subflow/subflow.h"
#include "tunnel/subflow/subflow_state.h"
#include "tunnel/wire/secrets.h"

namespace braid {

class PathManager {
 public:
  using Side = PathRoles::Side;

  /// All arguments must outlive this object.
  PathManager(Side side, const SessionOptions& options, ControlFrames& controls,
              DataTracker& dataTracker, PeerEvents& peerEvents, const RecoveryTrace& trace,
              SecretRandom& random, Time now);
  PathManager(const PathManager&) = delete;
  PathManager& operator=(const PathManager&) = delete;

  SubflowSet& subflows() { return subflows_; }
  PathRoles& roles() { return roles_; }
  /// Each usable subflow asks the peer at this interval whether both directions work; 0: never.
  void setKeepalive(Duration keepalive) { keepalive_ = keepalive; }
  /// The peer accepts no larger datagrams than `size` bytes of UDP payload. Also holds for subflows
  /// that are added later.
  void setLargestDatagram(size_t size);
  /// The peer wants to know when its packets were received; on subflows that are added later, too.
  void tellTimes();

  // ---- add and close

  /// Initiator: starts or reopens the subflow of this name. False when all subflow numbers are
  /// used.
  bool open(const std::string& name, const std::string& uplink, const Route& route, Time now);
  /// Initiator: the uplink of the subflow is gone. An unknown name is ignored.
  void close(const std::string& name, Time now);
  /// Initiator: see PathRoles::setPreference(). An unknown name is ignored.
  void setPreference(const std::string& name, const PathPreference& own,
                     const PathPreference& peers, std::shared_ptr<Pacer> ceiling);
  /// Responder: the first datagram of subflow `id` has arrived. Returns nullptr on the initiator's
  /// side, and when there are already SessionOptions::maxSubflows subflows.
  Subflow* accept(SubflowId id, const Route& from, Time now);
  /// The session ends: the subflows hand their data back to the data tracker.
  void clear() { subflows_.clear(); }

  // ---- what happens

  /// Handles the events that subflows have reported.
  void settle(Time now);
  /// The kernel refused to send on the route. True when a subflow uses it.
  bool onSendError(const Route& route, Time now);
  /// A PING arrived on the subflow.
  void onPing(Subflow& subflow, Time now);
  /// A datagram of `size` bytes was too large for the route. True when a subflow uses it.
  bool onTooBig(const Route& route, size_t size, Time now);
  void onTimer(Time now);
  Time nextDeadline(Time now) const;
  /// Nothing needs to be done before nextDeadline().
  bool isAtRest() const { return roles_.isAtRest(); }

  /// Sends a PING on each path that was validated, even on one that is silent.
  void ask();

  // ---- what follows

  /// How long an answer may take on the slowest path (its PTO); 0: there is no validated path.
  Duration answerTime() const;
  /// Recomputes the roles, unusableSince() and innerMtu().
  void update(Time now);
  bool anyUsable() const { return subflows_.anyUsable(); }
  /// Since when no subflow is usable, as of the last update(); kNever when one is.
  Time unusableSince() const { return unusableSince_; }
  /// Largest inner packet in bytes that all paths in use carry, as of the last update().
  size_t innerMtu() const { return innerMtu_; }
  /// The MTU search of a path has ended.
  bool knowsInnerMtu() const { return knowsInnerMtu_; }
  void fill(SessionStatus& status, Time now) const;

 private:
  Subflow& add(SubflowId id, const std::string& name, const std::string& uplink, const Route& route,
               Time now);
  void onEvent(const SubflowEvent& event, Time now);
  void onStateChange(const Subflow& subflow);
  void tellSilence(Subflow& subflow, Time now);
  void updateInnerMtu();

  Side side_;
  const SessionOptions& options_;
  ControlFrames& controls_;
  DataTracker& dataTracker_;
  PeerEvents& peerEvents_;
  const RecoveryTrace& trace_;
  SecretRandom& random_;
  ControllerGroup controllers_;  ///< shared by all subflows
  SubflowEvents events_;         ///< shared by all subflows
  SubflowSet subflows_;
  PathRoles roles_;
  Duration keepalive_ = 10s;
  Time unusableSince_;
  size_t innerMtu_;
  bool knowsInnerMtu_ = false;
  size_t largestDatagram_ = SIZE_MAX;
  bool tellsTimes_ = false;
};

}  // namespace braid
