#pragma once

// A configured peer. The object keeps one session with the other gateway alive.
//
//     initiator   no session --> attempts on all routes --> session --> attempts again when it is of no use
//     responder   a handshake is done --> candidate --> session, once the peer has chosen it
//                                               \--> keys for the session that runs, when the peer asks for that
//
// Whoever initiated the session also renews its keys, by attempts beside it. When they fail, the session goes on as it
// is, and they are made again.
//
// An initiator whose responder has restarted is called back (return_calls.h): it drops the session and begins at once.
// What a session has not brought to the peer when it ends goes by the next one (waiting_room.h).
//
// Both sides may begin at once. The peer is up from the first datagram of a session on, as long as the session
// has a usable path or lost the last one a short while ago.

#include <memory>
#include <optional>
#include <vector>

#include "base/packet.h"
#include "base/time.h"
#include "tunnel/attempts.h"
#include "tunnel/candidates.h"
#include "tunnel/handshake.h"
#include "tunnel/io.h"
#include "tunnel/options.h"
#include "tunnel/peer_owner.h"
#include "tunnel/peer_routes.h"
#include "tunnel/renewals.h"
#include "tunnel/return_calls.h"
#include "tunnel/session/session.h"
#include "tunnel/session_index.h"
#include "tunnel/status.h"
#include "tunnel/waiting_room.h"
#include "tunnel/wire/secret_random.h"

namespace braid {

/// What the peers of a tunnel share. All of it must outlive them.
struct PeerContext {
  const TunnelOptions& options;
  PacketPool& pool;
  HandshakeProvider& handshakes;
  PeerOwner& owner;
  EventQueue& events;
  SessionIndex& sessions;
  AttemptIndex& attempts;
};

/// Where a peer stands, for whoever keeps the peers.
struct PeerPlace {
  size_t peer = 0;    ///< position among the peers
  size_t group = 0;   ///< position of its group, if it has one (PeerGroups)
  bool inUse = true;  ///< packets for its prefixes go to it; false: another one of its group stands for it
};

class Peer final : public SessionOwner {
 public:
  /// Without a usable subflow for so long the initiator starts over, in case the other side has lost its keys. Ours.
  static constexpr Duration kStartOver = 1500ms;
  /// A session in which nothing was heard for so long is dropped. Ours.
  static constexpr Duration kForget = 180s;

  /// `random` must outlive it, too.
  Peer(PeerOptions options, const PeerContext& context, SecretRandom& random, Time now);
  ~Peer() override;

  const PeerOptions& options() const { return options_; }
  PeerPlace place;

  void setOptions(PeerOptions options, Time now);
  void setTunables();
  void setUplinks(const std::vector<UplinkAccount>& uplinks, Time now);

  /// The session to send by; nullptr when there is none.
  Session* session() {
    return session_ && session_->confirmed() && !session_->over() ? session_.get() : nullptr;
  }
  const Session* session() const { return const_cast<Peer*>(this)->session(); }
  bool isUp() const { return up_; }
  /// The peer does not answer, and another one stands for it: its session ends, its streams are reset, and what waits for
  /// it is handed back to be sent to the other one. A new session begins when the peer answers again.
  void abandon(Time now);
  /// What waits for the peer while it is not up.
  WaitingRoom& waiting() { return waiting_; }
  /// Every session there is.
  template <typename F>
  void forEachSession(F&& visit) const {
    if (session_) visit(*session_);
    candidates_.forEach(visit);
  }

  /// True when the datagram belongs to a handshake of ours, which takes it.
  bool onHandshakeDatagram(const Route& from, ByteView bytes, Time now);
  /// The peer may have restarted and call us back. True when it does: our session with it is over, and a new one
  /// begins. A call is good for one time.
  bool onReturnCall(const ReturnCall& call, Time now);
  /// A handshake that the peer initiated is done.
  void onAccepted(const SessionSecrets& secrets, Time now);
  /// A datagram for a session of this peer. nullopt when it was used, else why not. `opened`: as Session.
  std::optional<Drop> onDatagram(Session& session, const DatagramHeader& header, const Route& from, Ecn ecn,
                                 Packet datagram, Time now, const CipherWork* opened = nullptr);
  /// The kernel refused a datagram on this route. True when a session has a subflow there.
  bool onSendError(const Route& route, Time now);
  /// The kernel refused a datagram of this size. True when a session has a subflow there.
  bool onTooBig(const Route& route, size_t size, Time now);
  void onTimer(Time now);
  /// Says farewell in every session, and begins none.
  void close();

  bool pollDatagram(Datagram& out, Time now);
  Time nextDeadline(Time now) const;
  /// After a poll that gave nothing: the deadline before which nothing will come of another poll or of a timer
  /// call, unless something happens to this peer. nullopt: something may.
  std::optional<Time> restsUntil(Time now) const;
  /// What to know of the peer after a restart; nullopt: it has not come to us, or can be called by a handshake.
  std::optional<Caller> caller(Time now) const;
  /// `flows`: how many inner flows to list.
  PeerStatus status(Time now, size_t flows) const;

  // SessionOwner
  void onDelivered(Packet packet) override { context_.owner.onDelivered(*this, std::move(packet)); }
  void onTooLarge(ByteView packet) override { context_.owner.onTooLarge(*this, packet); }
  void onHandedBack(Packet packet) override {
    context_.owner.onReturned(*this, {std::move(packet), Asker::kEndedSession});
  }
  void onPacketDropped(ByteView packet) override { context_.owner.onPacketDropped(packet); }

 private:
  Time lostAt() const;
  Time pathlessAt() const;
  Time startOverAt() const;
  Time renewAt() const;
  bool needsSession(Time now) const { return startOverAt() <= now; }
  bool needsHandshake(Time now) const { return needsSession(now) || renewAt() <= now; }
  bool comesUp() const { return !up_ && session() && session_->anyUsable(); }
  bool crosses(const Session& candidate, Time now) const;
  SessionIndex::Handle makeSession(const SessionSecrets& secrets, KeySchedule::Role role, Time now);
  void connect(Time now);
  void stepAttempts(Time now);
  void settleRenewal(Session& session, Time now);
  void openSubflows(Time now);
  void setUp(bool up, const std::string& text);
  void endSession(SessionIndex::Handle next, Time now);
  void sendWaiting();

  PeerOptions options_;
  const PeerContext& context_;
  PeerEvents events_;
  SecretRandom& random_;
  std::vector<NamedRoute> routes_;
  SessionIndex::Handle session_;
  std::optional<ReturnCall> awaited_;  ///< what would end the session that this side began last, also later
  Candidates candidates_;
  Attempts attempts_;
  Renewals renewals_;
  WaitingRoom waiting_;
  bool up_ = false;
};

/// The peer has a session with a path that answers.
inline bool isUsable(const Peer& peer) {
  const Session* session = peer.session();
  return session && session->unusableSince() == kNever;
}

}  // namespace braid
