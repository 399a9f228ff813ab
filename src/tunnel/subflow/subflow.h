#pragma once

// The subflows of one session.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/name.h"
#include "base/timers.h"
#include "tunnel/subflow/acks.h"
#include "tunnel/subflow/route.h"
#include "tunnel/subflow/subflow_sender.h"
#include "tunnel/subflow/subflow_state.h"
#include "tunnel/subflow/subflow_status.h"
#include "tunnel/wire/frame_table.h"
#include "tunnel/wire/header.h"

namespace braid {

/// One subflow: a packet-number space on one route. Its parts do not know each other, with one
/// exception: for the PTO, the state machine is given the in-flight tracker and the path estimate.
///
///     life      the state machine: whether the path answers
///     route     where the peer is, and the validation of that route
///     sender    what was sent and what became of it: in-flight tracker, path estimate, send
///               admission, MTU
///     receiver  what came and is to be acknowledged
///
/// The subflow tells each part what it must know of the others. Callers use sender and receiver
/// directly for what concerns no other part.
class Subflow {
 public:
  using State = SubflowStateMachine::State;
  /// A challenge or a response, in a datagram of its own.
  using PathFrame = PeerRoute::Frame;
  /// Bytes that suffice for a datagram with an ACK of one range, whatever its numbers are.
  static constexpr size_t kLeastAckDatagram =
      kHeaderSize + kFrame<TimedAckFrame>.largest - 2 * (kMaxAckRanges - 1) * 8 + kTagSize;

  /// `trusted`: our configuration names the remote address. `options` and the arguments after it
  /// must outlive the subflow.
  Subflow(SubflowId id, std::string uplink, const Route& route, bool trusted,
          const SubflowOptions& options, SubflowEvents& events, DataTracker& dataTracker,
          ControllerGroup& group, SecretRandom& random, Time now);
  Subflow(const Subflow&) = delete;
  Subflow& operator=(const Subflow&) = delete;

  SubflowId id() const { return id_; }
  /// The name of its uplink, as the side that began it calls it; empty: the peer has told none.
  const std::string& name() const { return uplink_.empty() ? peerName_ : uplink_; }
  /// How tables and events call its path: name(), or else the remote address and port.
  std::string pathName() const { return name().empty() ? route().remote.toString() : name(); }
  /// What the peer is told; empty: nothing.
  std::string_view nameToTell() const {
    return options_.tellNames && isName(uplink_) ? uplink_ : std::string_view();
  }
  const Route& route() const { return peerRoute_.route(); }
  State state() const { return stateMachine_.state(); }
  bool usable() const { return stateMachine_.isUsable(); }
  /// The state machine, to be read: what the operator is told of it.
  const SubflowStateMachine& life() const { return stateMachine_; }
  /// The operator was told that the path is silent.
  void setTold() { stateMachine_.setTold(); }
  const PathPreference& preference() const { return preference_; }
  void setPreference(const PathPreference& preference) { preference_ = preference; }
  /// As PathView::uplink.
  uint16_t uplinkNumber() const {
    constexpr uint16_t kNoNumber = UINT8_MAX + 1;
    return preference_.uplink ? preference_.uplink : static_cast<uint16_t>(kNoNumber + id_.value());
  }
  /// Whether both paths are likely to fail together, as those of a modem with IPv4 and IPv6 are.
  bool sharesUplink(const Subflow& other) const { return uplinkNumber() == other.uplinkNumber(); }
  SubflowStatus status(Time now) const;

  // ---- the parts

  SubflowSender& sender() { return sender_; }
  const SubflowSender& sender() const { return sender_; }
  SubflowReceiver& receiver() { return receiver_; }
  const SubflowReceiver& receiver() const { return receiver_; }
  /// The sender's send admission: when a datagram may leave.
  SendAdmission& admission() { return sender_.admission(); }
  const SendAdmission& admission() const { return sender_.admission(); }
  /// The sender's path estimate: what has been measured of the path.
  const PathEstimate& path() const { return sender_.path(); }
  /// The sender's MTU discovery: how large datagrams may be.
  const MtuDiscovery& mtu() const { return sender_.mtu(); }

  // ---- what arrives

  /// A datagram with a new packet number was opened and all its frames were understood.
  void onPacket(PacketNumber pn, bool eliciting, Ecn ecn, size_t bytes, const Route& from,
                Time now);
  /// `samePath`: the ACK came over this subflow, so its delay says something about the path.
  /// Returns false when the ACK names a packet that was never sent; it then has no effect.
  bool onAck(const AckFrame& ack, bool samePath, Time now);
  /// The peer has sent a PING on this subflow; `again` as in SubflowStateMachine.
  void onPing(Duration again, Time now) { stateMachine_.onPing(again, now); }
  void onPathChallenge(const PathToken& token, const Route& from);
  /// Returns false when the token answers a challenge that was sent elsewhere; then it proves
  /// nothing.
  bool onPathResponse(const PathToken& token, const Route& from, Time now);
  /// The peer says whether it wants the subflow used.
  void onPeerStatus(const SubflowStatusFrame& status, Time now);
  /// The peer says how it wants the subflow used. Returns false when that is not news.
  bool onPeerPreference(const SubflowPreferenceFrame& frame);
  /// On the side that began the subflow it changes nothing: name() is that of its own uplink.
  void onPeerName(const SubflowNameFrame& frame) {
    if (!frame.name.empty()) peerName_ = frame.name;
  }

  void onObservedAddress(const ObservedAddressFrame& frame) {
    if (frame.address.address.family != Address::Family::kNone) observed_ = frame.address;
  }

  // ---- what happens on this side

  /// The kernel refused to send.
  void onSendError(Time now);
  /// The uplink is gone: nothing more is sent until open().
  void close(Time now);
  /// There is a (new) route. Its remote address is trusted if that of the constructor was.
  void open(const Route& route, Time now);

  /// The route of the constructor or of the last open(). The peer may have moved since then.
  const Route& asked() const { return asked_; }
  /// The subflow has a route, and the peer has not answered there yet.
  bool isUnproven() const { return stateMachine_.isUnproven(); }

  // ---- what leaves

  /// A PING must be sent now, even when the congestion window is full.
  bool mustSend() const;
  void requestPing() { stateMachine_.requestPing(); }
  /// A PING must be sent, and the peer must be heard on this path afterwards.
  void ask(Time now) { stateMachine_.ask(now); }
  /// When to call ask(), if the subflow is usable.
  Time askAt(Duration keepalive) const {
    return std::min(sender_.lastSentAt() + keepalive, stateMachine_.askAt(keepalive));
  }
  /// A challenge or response must be sent now.
  bool hasPathFrame(Time now) const { return sender_.canNumber() && peerRoute_.hasFrame(now); }
  /// The challenge or response, with its own route; nullopt when none is due or no packet number is
  /// free.
  std::optional<PathFrame> takePathFrame(Time now);
  /// Most bytes of a datagram with nothing but ACKs; 0: none may be sent. Until the peer has
  /// answered on the route, the amplification limit applies (PeerRoute::unprovenRoom()).
  size_t ackRoom() const;
  /// Takes the next packet number for a datagram that is sent now. `tracked`: it is ack-eliciting;
  /// then the caller fills in the data units.
  SentPacket& onSent(size_t bytes, bool tracked, Time now);
  /// The datagram, of `bytes`, is sent to the route `to`.
  void onRouted(const Route& to, size_t bytes) { peerRoute_.onSent(to, bytes); }
  /// Chooses the ECN codepoint of that datagram, which takes the subflow's own route.
  Ecn codepoint(PacketNumber pn, SentPacket& packet, Time now);
  /// For the path scheduler; `overflow` as in SendAdmission::takesData().
  PathView view(Time now, bool overflow = false) const;

  // ---- time

  /// When a timer is due, or the subflow itself must send something.
  Time nextDeadline() const;
  void onTimer(Time now);

 private:
  /// Timers, in the order in which onTimer() handles them.
  enum class Timer : uint8_t {
    kLoss,         ///< a packet in flight counts as lost
    kPto,          ///< probe timeout: the path may have fallen silent
    kSuppression,  ///< packets in flight on a suppressed path should have been acknowledged
    kProbe,        ///< a suspect path is to be probed
    kMtu,
    // The following only send something, when the session polls. Nothing is sent while no packet
    // number is free.
    kPath,  ///< a challenge is due, or the validation of a route is to be given up
    kAck,
    kUrgent,  ///< a PING, or the response to a challenge: at once
    kCount,
  };
  /// When the timer is due; kNever while it does not run.
  [[gnu::always_inline]] inline Time deadline(Timer timer) const;
  void onExpired(Timer timer, Time now);
  void onPto(Time now);
  void onNewState(Time now);
  void learn(const AckNews& news, bool samePath, Time now);
  void onProof(const PeerRoute::Proof& proof, Time now);
  void changeRoute(const Route& route, Time now);

  SubflowId id_;
  std::string uplink_;
  const SubflowOptions& options_;
  Route asked_;  ///< of the constructor or the last open()
  SubflowEventSink eventSink_;
  SubflowStateMachine stateMachine_;
  PeerRoute peerRoute_;
  PathPreference preference_;
  SequenceGuard statusWord_, preferenceWord_;  ///< for the peer's frames
  SubflowReceiver receiver_;
  SubflowSender sender_;
  std::string peerName_;  ///< what the peer calls its uplink; empty: it has told none
  /// This side's address and port as the peer sees them; of no family: the peer has told none.
  Endpoint observed_;
};

/// Owns the subflows of a session. A subflow stays until the session ends: a closed one keeps its
/// packet numbers and may be opened again. Each has a number (id), which is used on the wire, and a
/// position, which counts the subflows in the order in which they were added and is used by
/// schedulers and policies. Neither ever changes.
class SubflowSet {
 public:
  /// How many subflow numbers the wire format has.
  static constexpr size_t kMost = 256;

  size_t size() const { return order_.size(); }
  Subflow& operator[](size_t position) const { return *order_[position]; }
  /// In order of their positions.
  std::vector<Subflow*>::const_iterator begin() const { return order_.begin(); }
  std::vector<Subflow*>::const_iterator end() const { return order_.end(); }

  /// Returns nullptr when no subflow has the number.
  Subflow* find(SubflowId id) const {
    return id.value() < table_.size() ? table_[id.value()].subflow.get() : nullptr;
  }
  /// The subflow must exist.
  Subflow& at(SubflowId id) const { return *table_[id.value()].subflow; }
  size_t positionOf(SubflowId id) const { return table_[id.value()].position; }
  /// Position of the subflow with that name. Only the initiator names its subflows.
  std::optional<size_t> named(const std::string& name) const;

  /// The subflow's number must be free.
  Subflow& add(std::unique_ptr<Subflow> subflow, std::string name = {});

  /// Destroys all subflows; they release the data that they carry to the data tracker.
  void clear();

  bool anyUsable() const;
  /// The subflow with the smallest smoothed RTT among those that take new data; nullptr when none
  /// does.
  Subflow* fastest() const;

 private:
  struct Numbered {
    std::unique_ptr<Subflow> subflow;
    uint8_t position = 0;
  };
  std::vector<Numbered> table_;     ///< by number, up to the largest that was ever taken
  std::vector<Subflow*> order_;     ///< by position
  std::vector<std::string> names_;  ///< by position
};

}  // namespace braid
