#pragma once

// A configured peer. This object keeps one session with the other gateway alive.
//
//     initiator   no session -> connection race over all routes -> session
//                            -> another race when the session is of no use
//     responder   handshake done -> pending session -> session, once the peer has chosen it
//                                                   -> new keys for the running session, when the
//                                                      peer asks for that
//
// The initiator of the session also rekeys it, by handshakes beside it. If such a handshake fails,
// the session continues with its keys, and the handshake is tried again.
//
// An initiator whose responder has restarted receives a restart notice (restart_notice.h). It then
// drops the session and begins a new one at once. Packets that a session has not brought to the
// peer when it ends are sent through the next session (StagedPackets).
//
// Both sides may begin at once. The peer is up from the first datagram of a session on, as long as
// the session has a usable path or lost its last one less than the repair time ago.

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/containers.h"
#include "base/drop.h"
#include "base/memory_quota.h"
#include "base/packet.h"
#include "base/time.h"
#include "tunnel/api/options.h"
#include "tunnel/api/status.h"
#include "tunnel/peer/dialing.h"
#include "tunnel/peer/handshake.h"
#include "tunnel/peer/restart_notice.h"
#include "tunnel/peer/session_index.h"
#include "tunnel/peer/uplinks.h"
#include "tunnel/queue/packet_events.h"
#include "tunnel/session/session.h"
#include "tunnel/wire/secrets.h"

namespace braid {

struct StagedPacket {
  Packet packet;  ///< an inner packet (TUN) or frame (TAP)
  PacketOrigin asker = PacketOrigin::kLocalHost;
};

/// Packets for a peer without a session, kept while the peer may be back at once because its
/// gateway or this one has restarted. A TCP sender's first retransmission is often among them; its
/// next one would come only after twice the timeout. WireGuard stages packets in the same way.
/// Packets that are too large for what the next session knows of its paths at first are kept for a
/// round trip longer. Otherwise their host would be told to send smaller ones, and would do so for
/// minutes.
///
/// When the queue is full, new packets are dropped: their senders resend them later than the
/// earlier ones.
class StagedPackets final : private QuotaUser {
 public:
  /// Packets wait at most this long after the end of a session or the creation of the peer. Chosen:
  /// a supervisor restarts a daemon within a fraction of it, and a host that connects to an
  /// unreachable peer should learn of that soon.
  static constexpr Duration kPatience = 1s;
  /// Maximum number of packets that wait. Chosen: twice WireGuard's limit, because packets that
  /// sessions leave behind are staged here, too.
  static constexpr size_t kMost = 256;

  /// `quota`: that of queued packets. `drops`: counts packets for which there is no room
  /// [peer_down]. Both must outlive this object.
  StagedPackets(MemoryQuota& quota, DropCounts& drops)
      : QuotaUser(&quota, Reclaimable::kYes), drops_(drops) {}

  /// Packets may wait until kPatience from now.
  void open(Time now) { closesAt_ = now + kPatience; }
  bool isOpen(Time now) const { return now < closesAt_; }
  bool empty() const { return packets_.empty(); }
  size_t size() const { return packets_.size(); }
  /// When the waiting packets must be taken out at the latest.
  Time deadline() const { return empty() ? kNever : closesAt_; }

  /// Stages the packet, or drops it when kMost packets wait.
  void add(StagedPacket packet) {
    if (packets_.size() >= kMost) return countDrop(drops_, Drop::kPeerDown);
    packets_.pushBack(std::move(packet));
    setUsed(packets_.size());
  }
  /// The packet that has waited longest; false: none waits.
  bool poll(StagedPacket& out) {
    if (empty()) return false;
    out = std::move(packets_.front());
    packets_.popFront();
    setUsed(packets_.size());
    return true;
  }

 private:
  // QuotaUser: drops half of them, so that the search for the user with most packets is rare.
  void reclaim() override {
    for (size_t left = (packets_.size() + 1) / 2; left > 0; --left) {
      packets_.popBack();
      countDrop(drops_, Drop::kPeerDown);
    }
    setUsed(packets_.size());
  }

  Ring<StagedPacket> packets_;
  Time closesAt_ = Time::min();
  DropCounts& drops_;
};

/// What the peers of a tunnel share. All of it must outlive the peers.
struct PeerContext {
  const TunnelOptions& options;
  PacketPool& pool;
  HandshakeProvider& handshakes;
  EventQueue& events;
  PacketEventQueue& packets;
  const SharedResources& shared;
  SessionIndex& sessions;
  AttemptIndex& attempts;
};

/// The peer's position in its collections; maintained by these.
struct PeerIndex {
  size_t peer = 0;   ///< position among the peers
  size_t group = 0;  ///< position of its group, if it is in one (PeerGroups)
  /// Packets for its prefixes are sent to it; false: to another peer of its group instead.
  bool inUse = true;
};

class Peer final {
 public:
  /// The initiator begins a new session after this time without a usable subflow, in case the other
  /// side has lost its keys.
  static constexpr Duration kStartOver = 1500ms;
  /// A session in which nothing was received for this time is dropped.
  static constexpr Duration kForget = 180s;

  /// The references must outlive this object.
  Peer(PeerOptions options, const PeerContext& context, SecretRandom& random, Time now);
  ~Peer();

  const PeerOptions& options() const { return options_; }
  PeerIndex place;

  void setOptions(PeerOptions options, Time now);
  void setTunables();
  void setUplinks(const std::vector<UplinkMeterEntry>& uplinks, Time now);

  /// The session to send with; nullptr when there is none.
  Session* session() {
    return session_ && session_->confirmed() && !session_->over() ? session_.get() : nullptr;
  }
  const Session* session() const { return const_cast<Peer*>(this)->session(); }
  bool isUp() const { return up_; }
  /// The peer does not answer, and another peer of its group replaces it. Ends the session, resets
  /// its streams, and returns all waiting packets, to be sent to the other peer. A new
  /// session begins when this peer answers again.
  void abandon(Time now);
  /// The packets staged for the peer while it is not up.
  StagedPackets& waiting() { return waiting_; }
  /// Calls visit(const Session&) for the session in use and all pending ones.
  template <typename F>
  void forEachSession(F&& visit) const {
    if (session_) visit(*session_);
    pendingSessions_.forEach(visit);
  }

  /// True when the datagram belongs to a handshake that this side began, which takes it.
  bool onHandshakeDatagram(const Route& from, ByteView bytes, Time now);
  /// A restart notice arrived. True when it ends the session that this side began: then a new one
  /// begins. A notice is valid once.
  bool onRestartNotice(const RestartNotice& notice, Time now);
  /// A handshake that the peer began is done.
  void onAccepted(const SessionSecrets& secrets, Time now);
  /// A datagram for a session of this peer. Returns nullopt when it was used, else why not.
  std::optional<Drop> onDatagram(Session& session, const DatagramHeader& header, const Route& from,
                                 Ecn ecn, Packet datagram, Time now);
  /// The kernel refused a datagram on this route. True when a session has a subflow there.
  bool onSendError(const Route& route, Time now);
  /// The kernel refused a datagram of this size. True when a session has a subflow there.
  bool onTooBig(const Route& route, size_t size, Time now);
  /// Timers of the sessions and of staged packets. connect() must follow.
  void onTimer(Time now);
  /// Begins, continues or ends the handshakes that this gateway begins itself.
  void connect(Time now);
  /// Sends CLOSE in every session. No new session begins.
  void close();

  bool pollDatagram(Datagram& out, Time now);
  Time nextDeadline(Time now) const;
  /// After a poll that returned nothing: the time before which another poll or timer call would do
  /// nothing, unless something happens to this peer. nullopt: they may do something.
  std::optional<Time> restsUntil(Time now) const;
  /// What this gateway must know of the peer after its own restart; nullopt: the peer has not
  /// connected to us, or we can begin a handshake with it.
  std::optional<KnownInitiator> knownInitiator(Time now) const;
  /// `flows`: how many inner flows to list.
  PeerStatus status(Time now, size_t flows) const;

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
  void stepRace(Time now);
  void settleRenewal(Session& session, Time now);
  void openSubflows(Time now);
  void setUp(bool up, const std::string& text);
  void endSession(SessionIndex::Handle next, Time now);
  void sendWaiting();

  PeerOptions options_;
  const PeerContext& context_;
  PeerEvents events_;
  PacketEvents packets_;
  StreamRateLimits rateLimits_;  ///< of the peer, whatever its sessions
  SecretRandom& random_;
  std::vector<NamedRoute> routes_;
  SessionIndex::Handle session_;
  /// The restart notice that would end the session that this side began last, even after its end.
  std::optional<RestartNotice> awaited_;
  PendingSessions pendingSessions_;
  ConnectionRace race_;
  RekeyTimer rekeyTimer_;
  StagedPackets waiting_;
  bool up_ = false;
};

/// Whether the peer has a session with a path that answers.
inline bool isUsable(const Peer& peer) {
  const Session* session = peer.session();
  return session && session->unusableSince() == kNever;
}

}  // namespace braid
