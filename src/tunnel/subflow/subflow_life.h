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

  // ---- what may change the state; true when it has. `pto`: of the path, now.

  /// The peer has answered on the route in use: what it refused before is forgotten.
  bool onProven();
  /// Something is newly acknowledged.
  bool onAck();
  /// ptoDeadline() has come: a PING is due. A path that leaves it unanswered for another PTO is suspect, once nothing
  /// has been newly acknowledged for kSuspectSilence. `progressAt`: since when, Flight::progressAt().
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
  /// A datagram came from the peer: a suspect path is probed within a PTO of its last probe.
  void onPacket(Duration pto, Time now);
  /// What was in flight went to another route: its PTOs say nothing of this one.
  void forgetPtos();
  /// The route is another one: a suspect path is probed at once.
  void onNewRoute(Time now);

  // ---- probes

  /// A PING must go now, whatever the window says.
  bool owesPing() const { return pingDue_; }
  void requestPing() { pingDue_ = true; }
  /// Something left that asks for an ACK.
  void onSent() { pingDue_ = false; }
  /// When a suspect path is probed next; kNever in other states.
  Time probeAt() const;
  /// probeAt() has come: a PING is due.
  void onProbe(Time now);
  /// When a PTO has passed without an ACK; kNever while nothing is in flight or the subflow is not active.
  /// `timeout`: how long the first answer may take.
  Time ptoDeadline(const Flight& flight, const PathEstimate& path, Duration timeout) const;

 private:
  SubflowState state_;
  bool refused_ = false;  ///< the peer does not want the path used
  bool pingDue_ = false;
};

}  // namespace braid
