#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "base/timer_table.h"
#include "tunnel/subflow/last_word.h"
#include "tunnel/subflow/peer_route.h"
#include "tunnel/subflow/subflow_events.h"
#include "tunnel/subflow/subflow_life.h"
#include "tunnel/subflow/subflow_options.h"
#include "tunnel/subflow/subflow_receiver.h"
#include "tunnel/subflow/subflow_sender.h"
#include "tunnel/subflow/subflow_status.h"
#include "tunnel/wire/frame_traits.h"
#include "tunnel/wire/numbers.h"

namespace braid {

/// One subflow: a packet-number space on one route. Its parts do not know each other, but for the PTO, for which
/// life is told of the flight and the RTT:
///
///     life      whether the path answers: the states
///     route     where the peer is, and the proof of it
///     sender    what left and what became of it: flight, estimates, gate, MTU
///     receiver  what came and is to be acknowledged
///
/// The subflow tells each of them what it must know of the others. Callers use sender and receiver directly for
/// what concerns no other part.
class Subflow {
 public:
  using State = SubflowLife::State;
  /// A challenge or a response, in a datagram of its own.
  using PathFrame = PeerRoute::Frame;
  /// A datagram with an ACK of one range, whatever its numbers are.
  static constexpr size_t kLeastAckDatagram =
      kHeaderSize + kFrame<AckFrame>.largest - 2 * (kMaxAckRanges - 1) * 8 + kTagSize;

  /// `trusted`: our configuration names the remote address. `options` and what follows must outlive the
  /// subflow.
  Subflow(SubflowId id, std::string uplink, const Route& route, bool trusted, const SubflowOptions& options,
          SubflowEvents& events, DataLedger& ledger, ControllerGroup& group, SecretRandom& random, Time now);
  Subflow(const Subflow&) = delete;
  Subflow& operator=(const Subflow&) = delete;

  SubflowId id() const { return id_; }
  const std::string& uplink() const { return uplink_; }
  const Route& route() const { return peerRoute_.route(); }
  State state() const { return life_.state(); }
  bool usable() const { return life_.isUsable(); }
  const PathPreference& preference() const { return preference_; }
  void setPreference(const PathPreference& preference) { preference_ = preference; }
  SubflowStatus status(Time now) const;

  // ---- the parts

  SubflowSender& sender() { return sender_; }
  const SubflowSender& sender() const { return sender_; }
  SubflowReceiver& receiver() { return receiver_; }
  const SubflowReceiver& receiver() const { return receiver_; }
  /// The sender's: when a datagram may leave.
  Gate& gate() { return sender_.gate(); }
  const Gate& gate() const { return sender_.gate(); }
  /// The sender's: what has been measured of the path.
  const PathEstimate& path() const { return sender_.path(); }
  /// The sender's: how large datagrams may be.
  const MtuDiscovery& mtu() const { return sender_.mtu(); }

  // ---- what arrives

  /// A datagram with a new packet number was opened and all its frames understood.
  void onPacket(PacketNumber pn, bool eliciting, Ecn ecn, size_t bytes, const Route& from, Time now);
  /// `samePath`: the ACK came over this subflow, so that its delay says something of the path. False: it names a
  /// packet that was never sent, and has no effect.
  bool onAck(const AckFrame& ack, bool samePath, Time now);
  /// The peer has sent a PING on it; `again` as in SubflowLife.
  void onPing(Duration again, Time now) { life_.onPing(again, now); }
  void onPathChallenge(const PathToken& token, const Route& from);
  /// False: it answers a challenge that went elsewhere, and proves nothing.
  bool onPathResponse(const PathToken& token, const Route& from, Time now);
  /// The peer wants the subflow used, or does not.
  void onPeerStatus(const SubflowStatusFrame& status, Time now);
  /// The peer says how it wants the subflow used. False when that is no news.
  bool onPeerPreference(const SubflowPreferenceFrame& frame);

  // ---- what happens on this side

  /// The kernel refused to send.
  void onSendError(Time now);
  /// The uplink is gone: nothing more is sent until open().
  void close(Time now);
  /// There is a (new) route; the remote address is trusted as in the constructor.
  void open(const Route& route, Time now);

  /// The route of the constructor or the last open(): the peer may have moved since then.
  const Route& asked() const { return asked_; }
  /// The subflow has a route, and the peer has not answered there yet.
  bool isUnproven() const { return life_.isUnproven(); }

  // ---- what leaves

  /// A PING must go now, whatever the window says.
  bool mustSend() const;
  void requestPing() { life_.requestPing(); }
  /// A PING must go that is to be answered on this path.
  void ask(Time now) { life_.ask(now); }
  /// When to ask(), if the subflow is usable.
  Time askAt(Duration keepalive) const {
    return std::min(sender_.lastSentAt() + keepalive, life_.askAt(keepalive));
  }
  /// A challenge or response must go now.
  bool hasPathFrame(Time now) const { return sender_.canNumber() && peerRoute_.hasFrame(now); }
  /// The challenge or response, on a route of its own; nullopt when none is due, or no number is free.
  std::optional<PathFrame> takePathFrame(Time now);
  /// Bytes that a datagram with nothing but ACKs may have; 0: none may go. Before the peer has answered on the route
  /// it must have sent a third of that from there.
  size_t ackRoom() const;
  /// Takes the next packet number for a datagram that leaves now. `tracked`: something in it asks for an ACK;
  /// then the caller fills in the data.
  SentPacket& onSent(size_t bytes, bool tracked, Time now);
  /// That datagram, of `bytes`, takes this route.
  void onRouted(const Route& to, size_t bytes) { peerRoute_.onSent(to, bytes); }
  /// Decides on the ECN field of that datagram, which takes the subflow's own route.
  Ecn codepoint(PacketNumber pn, SentPacket& packet, Time now);
  /// For the path scheduler; `overflow` as in Gate::takesData().
  PathView view(Time now, bool overflow = false) const;

  // ---- time

  /// When something of the subflow's own must be sent, or a timer is due.
  Time nextDeadline() const;
  void onTimer(Time now);

 private:
  /// What may have to be done at some time, in the order of doing it.
  enum class Timer : uint8_t {
    kLoss,         ///< a packet in flight counts as lost
    kPto,          ///< probe timeout: the path may have fallen silent
    kSuppression,  ///< what is in flight on a suppressed path should have been acknowledged
    kProbe,        ///< of a suspect path
    kMtu,
    // Those that only send something, when the session polls; nothing leaves while no number is free.
    kPath,  ///< a challenge; or to give the proof of a route up
    kAck,
    kUrgent,  ///< a PING or a response to a challenge: at once
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
  SubflowVoice voice_;
  SubflowLife life_;
  PeerRoute peerRoute_;
  PathPreference preference_;
  LastWord statusWord_, preferenceWord_;  ///< the peer's
  SubflowReceiver receiver_;
  SubflowSender sender_;
};

}  // namespace braid
