#pragma once

// One configured peer: another gateway, known by its pin (the hash of its public key). A Peer keeps
// one session with it alive and replaces it when it is of no use. PeerSet owns the peers and, with
// Tunnel, makes all calls; PeerGroups and Forwarder also ask for the session.
//
// Terms. A route is an own socket and a remote address. A subflow is a session's path over one
// route, with packet numbers and congestion control of its own. A subflow is usable while the peer
// answers on it (Subflow::usable()); a session is usable while one of its subflows is.
//
// Initiator and responder are roles in one session: the initiator began its handshake. It alone
// opens the subflows and renews the keys. But whichever side has routes (endpoints of the peer,
// over usable uplinks) races for a new session when it has no usable one, even the responder of the
// last. If both began within kReconnectAfter, the session with the smaller id stays, unless the
// side that began it needs another one by then (needsSession()).
//
//     any side    with routes, and no session or kReconnectAfter without a usable one ->
//                 ConnectionRace (handshakes over all routes, the first one that is done wins) ->
//                 session, replaces the one before at once; this side is its initiator
//                 HandshakeServer finishes a handshake of the peer -> PendingSessions -> the first
//                 datagram that the peer sends in one of them makes it the session
//     initiator   keys are old (TunnelOptions::rekeyAfter) -> handshake beside the session ->
//                 KeyUpdate in the session
//     responder   the peer's KeyUpdate names a pending session -> its keys go to the session
//
// A session that ends or is replaced delivers what it holds, resets its streams, and returns TCP
// packets that may not have arrived and all that wait (Session::handBack()).
//
// States of the session (`session_`):
//
//     none          before the first one; after kIdleTimeout, abandon(), forgetKeys(), a restart
//                   notice or a key notice; and after `over`
//     unconfirmed   after a won race, from any state: nothing has been decrypted yet, so the peer
//                   may not have the keys. session() returns nullptr
//     in use        session() returns it. It may be unusable for a time
//     over          CLOSE was received, the peer violated the protocol, the pre-shared key has
//                   changed, or the keys are used up.
//                   session() returns nullptr; onTimer() removes the session once it has nothing
//                   left to send
//
// Besides, the peer is up or down. It is up while a session is in use that is usable or has been
// unusable for at most Session::patience(): TunnelOptions::repairTime (3 s by default), longer on
// slow paths. When a race is won it is down at once, however short the silence was, until the new
// session is confirmed. Inner packets to a peer that is down are staged for 1 s after a session
// ended or was replaced (StagedPackets), and otherwise answered by an ICMP error.
//
// What happens is put into two queues. Events (log lines; up and down) wait for the driver of
// Tunnel (tunnel.h). PacketEvents (inner packets that were delivered, dropped, or returned to be
// sent again) must be handled by Tunnel after each call.

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/drop.h"
#include "base/packet.h"
#include "base/time.h"
#include "tunnel/api/options.h"
#include "tunnel/api/status.h"
#include "tunnel/peer/dialing.h"
#include "tunnel/peer/handshake.h"
#include "tunnel/peer/restart_notice.h"
#include "tunnel/peer/session_index.h"
#include "tunnel/peer/staged_packets.h"
#include "tunnel/peer/uplinks.h"
#include "tunnel/queue/packet_events.h"
#include "tunnel/session/session.h"
#include "tunnel/wire/secrets.h"

namespace braid {

/// What the peers of a tunnel share. All of it must outlive the peers.
struct PeerContext {
  const TunnelOptions& options;
  PacketPool& pool;               ///< buffers of all datagrams and inner packets
  HandshakeProvider& handshakes;  ///< DTLS, or its stand-in in virtual time
  EventQueue& events;
  PacketEventQueue& packets;
  const SharedResources& shared;  ///< memory quotas, stream registry, trace
  SessionIndex& sessions;         ///< every session of every peer, by session id
  AttemptIndex& attempts;         ///< peers with which this side has begun a handshake, by route
};

class Peer final {
 public:
  /// A side with routes, initiator or responder, begins a race for a new session after this time
  /// without a usable subflow: the other side may have lost its keys.
  static constexpr Duration kReconnectAfter = 1500ms;
  /// A session ends, without a CLOSE, when no datagram of it could be decrypted for this time.
  static constexpr Duration kIdleTimeout = 180s;

  /// `context` and `random` must outlive this object. setUplinks() must follow: a peer without
  /// routes begins no handshake.
  Peer(PeerOptions options, const PeerContext& context, SecretRandom& random, Time now);
  ~Peer();

  // ---- position and role; written by the collections, read by anyone

  size_t position = 0;  ///< among the peers (PeerSet)
  size_t group = 0;     ///< position of its group (PeerGroups); meaningless without one
  /// Packets for its prefixes are sent to it; false: to another peer of its group instead. Always
  /// true for a peer without a group. Says nothing about session().
  bool inUse = true;
  TokenBucket icmpErrors;    ///< to the hosts behind it (IcmpErrors)
  TokenBucket routerErrors;  ///< from routers that are not in its prefixes (Forwarder)

  // ---- configuration

  const PeerOptions& options() const { return options_; }
  /// Replaces the options. The pin must be the same. Another pre-shared key ends the session.
  /// setUplinks() must follow, as the endpoints may be others.
  void setOptions(PeerOptions options, Time now);
  /// PeerContext::options has changed.
  void setTunables();
  /// The uplinks, or their state, have changed. As initiator, opens a subflow on each new route and
  /// closes the subflows of routes that are gone. Calls connect().
  void setUplinks(const std::vector<UplinkMeterEntry>& uplinks, Time now);

  // ---- for those who send

  /// The session in use; nullptr when there is none. Not to be kept over another call.
  Session* session() {
    return session_ && session_->confirmed() && !session_->over() ? session_.get() : nullptr;
  }
  const Session* session() const { return const_cast<Peer*>(this)->session(); }
  /// A session is in use, and it is usable.
  bool isUsable() const {
    const Session* used = session();
    return used && used->unusableSince() == kNever;
  }
  /// Up or down, as explained above. A peer that is up may have been unusable for up to
  /// Session::patience().
  bool isUp() const { return up_; }
  /// Packets that wait for the next session.
  StagedPackets& staged() { return staged_; }
  /// Another peer of the group has taken over, because this one does not answer (PeerGroups). Ends
  /// the session, resets its streams, and returns all waiting packets, which then go to the other
  /// peer. A side with routes continues to try to reach this one.
  void abandon(Time now);
  /// Calls visit(Session&) for the session, whatever its state, and for all pending ones.
  template <typename F>
  void forEachSession(F&& visit) const {
    if (session_) visit(*session_);
    pendingSessions_.forEach(visit);
  }

  // ---- what arrives, and what the kernel says

  /// A handshake datagram came on the route. Returns true when it belongs to a handshake that this
  /// side began, after connect(); false, and nothing has changed, when another peer or
  /// HandshakeServer must be asked.
  bool onHandshakeDatagram(const Route& from, ByteView bytes, Time now);
  /// The other gateway has restarted and says that its keys are gone. Returns true when the notice
  /// belongs to the session that this side began last; that session then ends, and connect() begins
  /// a race. Each notice is accepted once.
  bool onRestartNotice(const RestartNotice& notice, Time now);
  /// The other gateway says that what this side sends in its new session does not open there,
  /// because the pre-shared keys differ. Returns true when the notice belongs to the session that
  /// this side began last, and nothing has opened in that here either; the session then ends, and
  /// the next round of handshakes begins when its pause is over.
  bool onKeyNotice(const KeyNotice& notice, Time now);
  /// A handshake that the peer began is done: adds a pending session. Nothing happens when the
  /// session id is in use already.
  void onAccepted(const SessionSecrets& secrets, Time now);
  /// A datagram with the id of `session`, which is one of this peer's. May end sessions, `session`
  /// too. Returns nullopt when the datagram was used, else why not; the caller counts that.
  std::optional<Drop> onDatagram(Session& session, const DatagramHeader& header, const Route& from,
                                 Ecn ecn, Packet datagram, Time now);
  /// The kernel refused to send on this route: a subflow there is no longer usable until the peer
  /// answers a probe. True when a session has one.
  bool onSendError(const Route& route, Time now);
  /// The kernel refused a datagram of `size` bytes of UDP payload as too large for this route: a
  /// subflow there sends smaller ones (MtuDiscovery). True when a session has one.
  bool onTooBig(const Route& route, size_t size, Time now);

  // ---- time, and what leaves

  /// Does what is due in the sessions, removes those at their end, returns staged packets. Call it
  /// at nextDeadline(); an earlier call does no harm. The caller handles the returned packets first
  /// and then calls connect(). So packets that have waited too long are answered, and not sent in
  /// a session that connect() makes.
  void onTimer(Time now);
  /// Begins, continues or ends the handshakes that this side begins, as needed. The winner of a
  /// race becomes the session here. setUplinks(), onHandshakeDatagram() and
  /// onRestartNotice() call it themselves.
  void connect(Time now);
  /// Ends all sessions and handshakes with this peer. From now on nothing is sealed with their
  /// keys, not even a CLOSE. `why` is for the log, such as "has restarted". A side with routes
  /// begins a handshake in connect(). Returns what the restart notice needs by which the peer
  /// learns of it; nullopt: it needs none (knownInitiator()).
  std::optional<KnownInitiator> forgetKeys(const std::string& why, Time now);
  /// The gateway stops: every session sends CLOSE, and no handshake begins. Only polls may follow.
  void close();
  /// The next datagram to send: of a handshake, of the session, or of a pending one. False when
  /// none is ready, or the pool has no buffer.
  bool pollDatagram(Datagram& out, Time now);
  /// When onTimer() and connect() are due, or pollDatagram() may have more to send.
  Time nextDeadline(Time now) const;
  /// To be called after a poll that returned nothing. Returns nextDeadline() if neither a poll nor
  /// a timer call does anything before it, unless another call comes first: PeerSet leaves the peer
  /// alone until then. nullopt: PeerSet polls it at every turn, because what it waits for has no
  /// deadline, such as memory that others free, or the peer coming up.
  std::optional<Time> restsUntil(Time now) const;

  // ---- for the operator and for a restart

  /// What this gateway must keep in a file to send the peer a restart notice. nullopt when none is
  /// needed: the peer is not the initiator of a session in use, or has endpoints, so that this side
  /// can begin itself.
  std::optional<KnownInitiator> knownInitiator(Time now) const;
  /// `flows`: how many inner flows to list at most.
  PeerStatus status(Time now, size_t flows) const;

 private:
  Time idleTimeoutAt() const;
  Time downAt() const;
  Time reconnectAt() const;
  Time rekeyAt() const;
  bool needsSession(Time now) const { return reconnectAt() <= now; }
  bool needsHandshake(Time now) const { return needsSession(now) || rekeyAt() <= now; }
  bool mayComeUp() const { return !up_ && session() && session_->anyUsable(); }
  bool ownSessionStays(const Session& candidate, Time now) const;
  /// The secrets of a handshake with the pre-shared key, if there is one.
  SessionSecrets mixed(const SessionSecrets& exported) const;
  SessionIndex::Handle makeSession(const SessionSecrets& secrets, KeySchedule::Role role, Time now);
  void beginAnew(const std::string& why, Time now);
  void onUnopened(const Session& session, const Route& from, Time now);
  void refuse();
  void stepRace(Time now);
  void stepKeyUpdate(Session& session, Time now);
  void openSubflows(Time now);
  void setUp(bool up, const std::string& reason);
  void replaceSession(SessionIndex::Handle next, Time now);
  void returnStaged();

  PeerOptions options_;
  const PeerContext& context_;
  PeerEvents events_;
  PacketEvents packets_;
  /// Here and not in the session, so that a new session does not refill the token buckets.
  StreamRateLimits rateLimits_;
  SecretRandom& random_;
  std::vector<NamedRoute> routes_;  ///< to the endpoints over usable uplinks; after close(): empty
  SessionIndex::Handle session_;
  /// The notice that onRestartNotice() accepts. Stays after the end of its session, because a
  /// notice then ends the pause between two rounds of handshakes, which may be long.
  std::optional<RestartNotice> awaited_;
  /// The notice that onKeyNotice() accepts: of the session that this side began last.
  std::optional<KeyNotice> refusable_;
  /// The key notice to send next, and where; at most one waits.
  std::optional<std::pair<KeyNotice, Route>> keyNotice_;
  std::string refusal_;  ///< PeerStatus::refusal
  PendingSessions pendingSessions_;
  ConnectionRace race_;
  RekeyTimer rekeyTimer_;
  StagedPackets staged_;
  bool up_ = false;
};

}  // namespace braid
