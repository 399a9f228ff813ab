#pragma once

// The states of a subflow, each with the data that no other state has.
//
//   Validating --(the peer answers)--> Active --(it falls silent, or is refused)--> Suspect
//   Suspect ----(an ACK comes)-------> Active
//   any --------(its uplink is gone)-> Closed
//   Closed -----(the peer answers)---> Active
//
// Only an active subflow carries data, so a probe timeout (PTO) runs only there.
//
// This file also has the events that subflows report to their session, and the state machine.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <variant>

#include "base/containers.h"
#include "base/time.h"
#include "tunnel/subflow/in_flight.h"
#include "tunnel/subflow/path_estimate.h"
#include "tunnel/wire/header.h"

namespace braid::state {

/// The peer has not answered on the route yet; no data is sent.
struct Validating {};

/// The subflow carries data.
struct Active {
  /// A subflow becomes suspect after this many PTOs in a row without any acknowledgment, at the
  /// earliest.
  static constexpr int kSuspectPtos = 2;

  int ptos = 0;            ///< PTOs in a row, without any acknowledgment
  Time lastPtoAt;          ///< when the last of them was
  Time askedAt = kNever;   ///< when ask() was called, if the peer has not been heard here since
  bool afterBlip = false;  ///< it was suspect before, for so short a time that nobody was told
};

/// The path is silent: the subflow's data has been reinjected elsewhere, and the path is probed
/// with backoff until an ACK comes.
struct Suspect {
  /// Number of probes before the pauses between them grow: on a path that loses one packet in
  /// three, the first few may be lost.
  static constexpr int kQuickProbes = 4;
  /// Each pause is longer than the one before by 1/kProbeGrowth of it. So a path that is back is
  /// noticed after at most half the length of its silence, and usually after a sixth of it.
  static constexpr int kProbeGrowth = 2;
  /// Longest pause between probes.
  static constexpr Duration kMaxProbeInterval = 1s;
  /// A subflow that has been suspect for longer than this is shown as failed; it is still probed.
  static constexpr Duration kFailedAfter = 10s;
  /// A silence that is shorter is a blip: it is counted, and the operator is not told of it.
  static constexpr Duration kBlip = 100ms;

  Time since;
  Time silentSince;        ///< since when nothing was newly acknowledged or heard
  bool isTold = false;     ///< the operator was told
  Duration probeInterval;  ///< pause after the next probe
  Time probeAt;            ///< when the next probe is sent, unless the peer refuses the path
  Time probedAt;           ///< when the last one was sent; Time::min(): none was
  int probes = 0;          ///< number of probes sent

  /// The first probe is sent at once.
  Suspect(Duration pto, Time silent, Time now)
      : since(now), silentSince(silent), probeInterval(pto), probeAt(now), probedAt(Time::min()) {}
  void onProbe(Time now) {
    probedAt = now;
    probeAt = now + probeInterval;
    if (++probes >= kQuickProbes)
      probeInterval =
          std::min<Duration>(probeInterval + probeInterval / kProbeGrowth, kMaxProbeInterval);
  }
  /// The peer was heard: the next probe is sent a PTO after the last one, however long the pause
  /// has become.
  void hasten(Duration pto, Time now) { probeAt = std::max(now, probedAt + pto); }
  bool hasFailed(Time now) const { return now - since > kFailedAfter; }
  /// The silence was so long that what was known of the path is stale.
  bool isStale(Time now) const { return now - since > kMaxProbeInterval; }
};

/// The subflow has no usable route. Its packet numbers are kept, so that it may be opened again.
struct Closed {
  Time downSince;         ///< since when the path has not worked
  bool reopened = false;  ///< it has a route again, which is being proven
};

}  // namespace braid::state

namespace braid {

using SubflowState = std::variant<state::Validating, state::Active, state::Suspect, state::Closed>;

}  // namespace braid

namespace braid {

struct SubflowEvent {
  enum class Kind : uint8_t {
    kState,             ///< the subflow has entered another state
    kAddress,           ///< the peer is proven to be at a new route
    kControlDelivered,  ///< a packet that carries control frames has arrived
    kControlLost,       ///< a packet that carries control frames has most likely not arrived
    kPacketLost,        ///< the packet has been declared lost
  };
  Kind kind{};
  SubflowId subflow{};
  PacketNumber packetNumber{};
  double lossRate = 0;  ///< kPacketLost: share lost among the latest packets, this one included
};

/// The events of all subflows of a session, in the order in which they happened. The session
/// empties this queue after each call that may change a subflow, so that it finds the subflow as
/// the event left it.
class SubflowEvents {
 public:
  void push(SubflowEvent event) { queue_.pushBack(std::move(event)); }
  /// Takes the oldest event; returns false when there is none.
  bool poll(SubflowEvent& out) {
    if (queue_.empty()) return false;
    out = queue_.front();
    queue_.popFront();
    return true;
  }

 private:
  Ring<SubflowEvent> queue_;
};

/// Reports the events of one subflow, or of a part of it: puts the subflow's number on each event.
class SubflowEventSink {
 public:
  /// `events` must outlive it.
  SubflowEventSink(SubflowId subflow, SubflowEvents& events) : subflow_(subflow), events_(events) {}
  void tell(SubflowEvent::Kind kind, PacketNumber pn = {}, double lossRate = 0) {
    events_.push({kind, subflow_, pn, lossRate});
  }

 private:
  SubflowId subflow_;
  SubflowEvents& events_;
};

}  // namespace braid

namespace braid {

/// Finds outdated frames. The peer's frames about one matter (such as SUBFLOW_STATUS) carry a
/// sequence that grows, so that an older frame that arrives late is recognized.
class SequenceGuard {
 public:
  /// Whether a frame with this sequence is news. False: that frame or a later one came before.
  bool isNews(uint64_t sequence) {
    if (sequence < next_) return false;
    next_ = sequence + 1;
    return true;
  }

 private:
  uint64_t next_ = 0;  ///< the least sequence that is news
};

}  // namespace braid

namespace braid {

/// The state machine of one subflow: whether its path answers. It also says when to send a PING on
/// a path that has fallen silent.
///
/// A path must work in both directions. An ACK over the path itself shows that. An ACK over another
/// path shows only that packets arrive. It shows the rest together with a datagram that has come on
/// the path since these packets were sent.
///
/// This class only keeps the state. The caller of its on... functions acts on a new state.
class SubflowStateMachine {
 public:
  /// The alternatives of SubflowState, in their order.
  enum class State : uint8_t { kValidating, kActive, kSuspect, kClosed };
  /// A path becomes suspect only after nothing was newly acknowledged for this long, however many
  /// probes were lost: a gateway may be without the processor for this long. On a path that was
  /// late (onLate()) it is twice as long as that took, and at most kBlip, for kLateKept.
  static constexpr Duration kSuspectSilence = 20ms;
  /// Chosen: a machine that was too busy to answer is likely to be so again within a minute.
  static constexpr Duration kLateKept = 60s;

  State state() const { return static_cast<State>(state_.index()); }
  /// The subflow may carry data.
  bool isUsable() const { return state() == State::kActive; }
  /// The subflow has a route, and the peer has not answered there yet.
  bool isUnproven() const;
  /// A PTO has passed since the last ACK, or the path is suspect. Packets sent now are to bring it
  /// back.
  bool isSilent() const;
  /// Suspect for so long that what was known of the path is stale.
  bool isStale(Time now) const;
  /// "validating", "active", "suspect", "failed", "closed". A closed subflow that has a route again
  /// is "validating".
  const char* name(Time now) const;
  /// Which direction of a suspect path is dead while the other one works: "out" to the peer, "in"
  /// from it. Empty: both are dead, or it is not known.
  const char* deadWay(Time now) const;
  /// How long the path has not worked: of a suspect one, since it last answered; of a closed one,
  /// since that or since it was closed. 0 in other states.
  Duration down(Time now) const;

  // ---- for the operator: silences of kBlip and more are told, shorter ones are only counted

  /// When the operator is to be told that the path is silent; kNever: there is nothing to tell.
  Time tellAt() const;
  /// The operator was told.
  void setTold() { std::get<state::Suspect>(state_).isTold = true; }
  /// The path is active again after a silence that nobody was told of.
  bool isAfterBlip() const;
  /// How many such silences there were.
  uint64_t blips() const { return blips_; }

  // ---- may change the state; true when it has. `pto`: the path's current PTO.

  /// The peer has answered on the route in use. An earlier refusal by the peer is forgotten.
  bool onProven();
  /// A packet sent at `sentAt` is newly acknowledged. `samePath`: the ACK came over this path.
  bool onAck(Time sentAt, bool samePath);
  /// A datagram came on the path. On a suspect path this brings the next probe forward: a PTO, but
  /// at least kSuspectSilence, after the last probe.
  bool onPacket(Duration pto, Time now);
  /// ptoDeadline() has come: a PING is due. The path becomes suspect when the PING of an earlier
  /// PTO was not answered either, and nothing has been newly acknowledged for kSuspectSilence, or
  /// nothing was heard for that long after ask(). `progressAt`: since when nothing was
  /// acknowledged, InFlightTracker::progressAt(); kNever: nothing is in flight.
  bool onPto(Duration pto, Time progressAt, Time now);
  /// The peer refuses the path, or no longer does. While the peer refuses it, an active or suspect
  /// path is suspect, is not probed, and does not become active by an ACK.
  bool onPeerStatus(bool refuses, Duration pto, Time now);
  /// The kernel refused to send a datagram.
  bool onSendError(Duration pto, Time now);
  /// The uplink is gone.
  bool close(Time now);

  // ---- do not change the state

  /// The subflow has a route again, which is to be validated. Returns false unless it was closed.
  bool reopen();
  /// Called before onAck(): a packet sent at `sentAt` is newly acknowledged. If the path is suspect
  /// and the packet older than that, nothing was lost, and the answer was only late: a machine was
  /// without the processor. That happens again, and the path must not be left each time. A silence
  /// of kBlip or more is an outage all the same.
  void onLate(Time sentAt, Time now);
  /// The packets in flight were sent to another route: their PTOs say nothing about this one.
  void forgetPtos();
  /// The route has changed: a suspect path is probed at once.
  void onNewRoute(Time now);

  // ---- probes

  /// A PING must be sent now, even when the congestion window is full.
  bool owesPing() const { return pingDue_; }
  void requestPing() { pingDue_ = true; }
  /// A PING must be sent, and something must be heard on the path afterwards. A PTO runs for that
  /// as for a packet in flight.
  void ask(Time now);
  /// When to call ask(); kNever: no need. The call is due when nothing has come on the path for the
  /// keepalive time since an ack-eliciting packet was sent. While the peer doubts the path
  /// (onPing()), it is also due when no ack-eliciting packet was sent for the keepalive time.
  Time askAt(Duration keepalive) const;
  /// The peer has sent a PING. A second one within `again` means that the peer does not hear what
  /// this side answers.
  void onPing(Duration again, Time now);
  /// An ack-eliciting packet was sent.
  void onSent(Time now);
  /// When a suspect path is probed next; kNever in other states, or while the peer refuses the
  /// path.
  Time probeAt() const;
  /// probeAt() has come: a PING is due.
  void onProbe(Time now);
  /// When a PTO has passed without an ACK. kNever when the subflow is not active, or when nothing
  /// is in flight and ask() waits for nothing. `timeout`: how long the first answer may take.
  Time ptoDeadline(const InFlightTracker& flight, const PathEstimate& path, Duration timeout) const;

 private:
  bool onAnswer();

  SubflowState state_;
  bool refused_ = false;  ///< the peer does not want the path used
  bool pingDue_ = false;
  /// A packet sent at or after unheardSince_ was acknowledged over another path.
  bool reached_ = false;
  /// The peer doubts the path (onPing()), and no ack-eliciting packet was sent since.
  bool doubted_ = false;
  /// When the first ack-eliciting packet was sent since the last datagram came on the path.
  Time unheardSince_ = kNever;
  Time heardAt_ = Time::min();          ///< when the last datagram came on the path
  Time sentAt_{};                       ///< when the last ack-eliciting packet was sent
  Time pingedAt_ = Time::min();         ///< when the peer's last PING came
  Duration silence_ = kSuspectSilence;  ///< that makes the path suspect
  Time silenceUntil_ = kNever;          ///< when `silence_` is kSuspectSilence again
  uint64_t blips_ = 0;
};

}  // namespace braid
