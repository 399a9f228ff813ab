#pragma once

// The subflows of one session: how they come and go, and what follows from the state that they are in.
//
// What flows through. Subflows are changed by their owner (open, close, setPreference), by the peer (accept, and the
// frames that Inbound hands to them) and by time (onTimer). They tell of it by SubflowEvents, which are settled here:
// control frames hear of their fate, duties are due again, the operator and the trace get their lines. Three things
// come out that the rest of the session goes by: the duty of each subflow (PathDuties), since when none is usable,
// and the inner MTU.
//
// Life. The initiator opens a subflow by name, the responder accepts it with its first datagram. A subflow stays
// until the session ends: one that is closed keeps its packet numbers and may be opened again.
//
// Invariants. The initiator numbers its subflows from 0 on, and no side has more than SessionOptions::maxSubflows.
// settle() follows every call into a subflow that may tell something; the calls of this class do it themselves. The
// session calls update() at the end of whatever may have made a subflow usable or not.

#include <cstdint>
#include <memory>
#include <string>

#include "scheduler/rate/controller_group.h"
#include "tunnel/lane/data_ledger.h"
#include "tunnel/lane/trace.h"
#include "tunnel/session/control_frames.h"
#include "tunnel/session/path_duties.h"
#include "tunnel/session/peer_events.h"
#include "tunnel/session/session_options.h"
#include "tunnel/session/session_status.h"
#include "tunnel/subflow/subflow_events.h"
#include "tunnel/subflow/subflow_set.h"
#include "tunnel/wire/secret_random.h"

namespace braid {

class PathManager {
 public:
  using Side = PathDuties::Side;

  /// All must outlive it.
  PathManager(Side side, const SessionOptions& options, ControlFrames& controls, DataLedger& ledger,
              PeerEvents& peerEvents, const RecoveryTrace& trace, SecretRandom& random, Time now);
  PathManager(const PathManager&) = delete;
  PathManager& operator=(const PathManager&) = delete;

  SubflowSet& subflows() { return subflows_; }
  PathDuties& duties() { return duties_; }
  /// Each usable subflow asks the peer so often whether both directions work; 0: never.
  void setKeepalive(Duration keepalive) { keepalive_ = keepalive; }
  /// The peer takes no larger datagrams, in bytes of UDP payload; holds for subflows that come, too.
  void setLargestDatagram(size_t size);

  // ---- come and go

  /// Initiator: starts or reopens the subflow of this name. False when the numbers are used up.
  bool open(const std::string& name, const std::string& uplink, const Route& route, Time now);
  /// Initiator: the uplink of the subflow is gone. A name that is not there is ignored.
  void close(const std::string& name, Time now);
  /// Initiator: see PathDuties::setPreference(). A name that is not there is ignored.
  void setPreference(const std::string& name, const PathPreference& own, const PathPreference& peers,
                     std::shared_ptr<Pacer> ceiling);
  /// Responder: the first datagram of the subflow `id` has come. nullptr to an initiator, and when there are as many
  /// subflows as there may be.
  Subflow* accept(SubflowId id, const Route& from, Time now);
  /// The session ends: subflows hand their data back to the ledger.
  void clear() { subflows_.clear(); }

  // ---- what happens

  /// Acts on what subflows have told.
  void settle(Time now);
  /// The kernel refused to send on the route. True when a subflow is there.
  bool onSendError(const Route& route, Time now);
  /// A PING came on the subflow.
  void onPing(Subflow& subflow, Time now);
  /// A datagram of that size was too large for the route. True when a subflow is there.
  bool onTooBig(const Route& route, size_t size, Time now);
  void onTimer(Time now);
  Time nextDeadline(Time now) const;
  /// Nothing is to be done before nextDeadline().
  bool isAtRest() const { return duties_.isAtRest(); }

  /// Asks each path whether it answers, also one that is silent.
  void ask();

  // ---- what follows

  /// How long an answer may take on the slowest path; 0: there is none.
  Duration answerTime() const;
  /// Draws the conclusions that the rest of the session goes by.
  void update(Time now);
  bool anyUsable() const { return subflows_.anyUsable(); }
  /// As of update(): since when no subflow is usable; kNever when one is.
  Time unusableSince() const { return unusableSince_; }
  /// As of update(): largest inner packet that serves the paths in use, bytes.
  size_t innerMtu() const { return innerMtu_; }
  /// A path has been searched.
  bool knowsInnerMtu() const { return knowsInnerMtu_; }
  void fill(SessionStatus& status, Time now) const;

 private:
  Subflow& add(SubflowId id, const std::string& name, const std::string& uplink, const Route& route,
               Time now);
  void onEvent(const SubflowEvent& event, Time now);
  void onStateChange(const Subflow& subflow);
  void updateInnerMtu();

  Side side_;
  const SessionOptions& options_;
  ControlFrames& controls_;
  DataLedger& ledger_;
  PeerEvents& peerEvents_;
  const RecoveryTrace& trace_;
  SecretRandom& random_;
  ControllerGroup controllers_;  ///< of all subflows
  SubflowEvents events_;         ///< of all subflows
  SubflowSet subflows_;
  PathDuties duties_;
  Duration keepalive_ = 10s;
  Time unusableSince_;
  size_t innerMtu_;
  bool knowsInnerMtu_ = false;
  size_t largestDatagram_ = SIZE_MAX;
};

}  // namespace braid
