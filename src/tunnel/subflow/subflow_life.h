#pragma once

#include <cstdint>

#include "base/time.h"
#include "tunnel/subflow/flight.h"
#include "tunnel/subflow/path_estimate.h"
#include "tunnel/subflow/subflow_state.h"

namespace braid {

/// Whether the path of one subflow answers: the subflow's state (subflow_state.h), and the PINGs that ask a path
/// that has fallen silent.
///
/// A path must work both ways. An ACK over the path itself shows that; one over another path shows only that packets
/// arrive there, and shows the rest together with a datagram that has come on the path since they left.
///
/// Life says only what is so. Whoever tells it of something (the on... functions) sees to what follows from a
/// new state.
class SubflowLife {
 public:
  /// SubflowState by name, in its order.
  enum class State : uint8_t { kValidating, kActive, kSuspect, kClosed };
  /// A shorter time without anything newly acknowledged makes no path suspect, however many probes it has swallowed: a
  /// gateway may be kept from its processor for so long. Ours.
  static constexpr Duration kSuspectSilence = 20ms;

  State state() const { return static_cast<State>(state_.index()); }
  /// The subflow may carry data.
  bool isUsable() const { return state() == State::kActive; }
  /// The subflow has a route, and the peer has not answered there yet.
  bool isUnproven() const;
  /// A PTO has passed since the last ACK, or the path is suspect: what leaves now is to bring it back.
  bool isSilent() const;
  /// Suspect for so long that what was known of the path is stale.
  bool isStale(Time now) const;
  /// "validating", "active", "suspect", "failed", "closed". One that was closed and has a route again is "validating".
  const char* name(Time now) const;
  /// Which direction of a suspect path is dead while the other one works: "out" to the peer, "in" from it. Empty: both
  /// are, or it is not known.
  const char* deadWay(Time now) const;

  // ---- what may change the state; true when it has. `pto`: of the path, now.

  /// The peer has answered on the route in use: what it refused before is forgotten.
  bool onProven();
  /// Something is newly acknowledged, which left at `sentAt`. `samePath`: the ACK came over this path.
  bool onAck(Time sentAt, bool samePath);
  /// A datagram came on the path. A suspect path is probed within a PTO of its last probe.
  bool onPacket(Duration pto, Time now);
  /// ptoDeadline() has come: a PING is due. A path that leaves it unanswered for another PTO is suspect, once nothing
  /// has been newly acknowledged for kSuspectSilence, or nothing been heard so long after ask(). `progressAt`: since
  /// when nothing was acknowledged, Flight::progressAt(); kNever: nothing is in flight.
  bool onPto(Duration pto, Time progressAt, Time now);
  /// The peer refuses the path, or no longer does. While it does an active or suspect path is suspect, is not probed,
  /// and no ACK takes it back.
  bool onPeerStatus(bool refuses, Duration pto, Time now);
  /// The kernel refused to send.
  bool onSendError(Duration pto, Time now);
  /// The uplink is gone.
  bool close();

  // ---- what does not

  /// The subflow has a route again, which is to be proven. False unless it was closed.
  bool reopen();
  /// What was in flight went to another route: its PTOs say nothing of this one.
  void forgetPtos();
  /// The route is another one: a suspect path is probed at once.
  void onNewRoute(Time now);

  // ---- probes

  /// A PING must go now, whatever the window says.
  bool owesPing() const { return pingDue_; }
  void requestPing() { pingDue_ = true; }
  /// A PING must go, and something must be heard on the path then: as for a PTO.
  void ask(Time now);
  /// When to ask(); kNever: no need. After the keepalive time in which what left asked for ACKs and nothing came on the
  /// path; and when the peer doubts the path, and nothing has left for the keepalive time that asks for an ACK.
  Time askAt(Duration keepalive) const;
  /// The peer has sent a PING: a second one within `again` says that it does not hear what this side answers.
  void onPing(Duration again, Time now);
  /// Something left that asks for an ACK.
  void onSent(Time now);
  /// When a suspect path is probed next; kNever in other states.
  Time probeAt() const;
  /// probeAt() has come: a PING is due.
  void onProbe(Time now);
  /// When a PTO has passed without an ACK; kNever while nothing is in flight or the subflow is not active.
  /// `timeout`: how long the first answer may take.
  Time ptoDeadline(const Flight& flight, const PathEstimate& path, Duration timeout) const;

 private:
  bool onAnswer();

  SubflowState state_;
  bool refused_ = false;  ///< the peer does not want the path used
  bool pingDue_ = false;
  bool reached_ =
      false;  ///< of what has left since unheardSince_ something is acknowledged, over another path
  bool doubted_ = false;  ///< the peer has asked twice, and this side has not asked since
  Time unheardSince_ =
      kNever;  ///< when something first left that asks for an ACK since a datagram came on the path
  Time heardAt_ = Time::min();   ///< when one came
  Time sentAt_{};                ///< when something last left that asks for an ACK
  Time pingedAt_ = Time::min();  ///< when the peer's last PING came
};

}  // namespace braid
