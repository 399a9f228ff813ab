#pragma once

// The peers of a tunnel, and which of them need attention.
//
// A peer is awake or at rest. Whatever happens to a peer (a datagram, a packet for it, new
// settings, its deadline) wakes it. Peers that are awake are polled in every round and get every
// timer call. A peer is put to rest when a poll returns nothing and no timer is due. Packets that
// it has sent may still be un-ACKed, and data may still wait for an ACK or for the pacer. A peer at
// rest costs only its entry in a heap of deadlines, so that the work for a packet or a deadline
// does not grow with the number of peers.
//
// Invariant: a peer at rest would send nothing before its deadline, however often it was polled,
// and would only learn that its paths are idle. There are exceptions of at most some tenths of a
// millisecond: where another peer keeps the ceiling of a shared uplink closed for longer; where the
// policy looks at the spare windows of paths (fuso, cofuso); and the 100 us for which a path
// scheduler's decision about a waiting flow holds. Peers are served in the order of a round over
// all of them.

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/timers.h"
#include "tunnel/peer/peer.h"
#include "tunnel/wire/handshake_envelope.h"
#include "tunnel/wire/header.h"

namespace braid {

class PeerSet {
 public:
  /// All arguments must outlive this object.
  PeerSet(const TunnelOptions& options, PacketPool& pool, HandshakeProvider& handshakes,
          EventQueue& events, PacketEventQueue& packets, const SharedResources& shared)
      : context_{options, pool, handshakes, events, packets, shared, sessions_, attempts_} {}

  size_t size() const { return peers_.size(); }
  const Peer& at(size_t position) const { return *peers_[position].peer; }
  /// How many peers are not at rest.
  size_t awake() const { return awake_.size(); }
  template <typename F>
  void forEach(F&& visit) const {
    for (const Entry& entry : peers_) visit(*entry.peer);
  }

  /// Replaces the peers. A peer with the same pin as before keeps its sessions. Returns the removed
  /// peers.
  [[nodiscard]] std::vector<std::unique_ptr<Peer>> replace(
      std::vector<PeerOptions> peers, const std::vector<UplinkMeterEntry>& uplinks,
      SecretRandom& random, Time now);
  /// Removes all peers and ends their sessions.
  void clear();
  void setUplinks(const std::vector<UplinkMeterEntry>& uplinks, Time now);
  void setTunables();
  void close();

  /// True when the datagram belongs to a handshake that one of the peers began; that peer takes it.
  bool onHandshakeDatagram(const Route& from, ByteView bytes, Time now);
  /// A restart notice. True when it ended the session of one of the peers.
  bool onRestartNotice(const Route& from, const RestartNotice& notice, Time now);
  /// A key notice. True when it ended the session of one of the peers.
  bool onKeyNotice(const KeyNotice& notice, Time now);
  /// A handshake that a peer began is done. A peer that is no longer configured gets no session.
  void onAccepted(const SessionSecrets& secrets, Time now);
  /// The kernel refused a datagram. Calls visit(Peer&) with the peer of its session, or with each
  /// peer that has a handshake on its route if it is a handshake datagram. Wakes the peer if that
  /// returns true. Other peers on the route, and the HandshakeServer, notice it with their own next
  /// datagram.
  template <typename F>
  void forSender(const Datagram& refused, F&& visit) {
    auto tell = [&](Peer& peer) {
      if (visit(peer)) wake(peer);
    };
    if (isHandshakeDatagram(refused.bytes.view())) return attempts_.forEachOn(refused.route, tell);
    std::optional<DatagramHeader> header = readHeader(refused.bytes.view());
    if (Peer* peer = header ? find(header->session).peer : nullptr) tell(*peer);
  }
  /// Timer call of the peers that are awake or due. Calls settle() before each of them continues
  /// its handshakes: a new session must not take staged packets that have expired. Calls
  /// after(Peer&) at the end of each. Both may wake other peers: where frames are bridged, packets
  /// that one peer releases may be sent to another.
  template <typename Settle, typename After>
  void onTimer(Time now, Settle&& settle, After&& after) {
    settingsAreNew_ = false;
    wakeDue(now);
    for (Place next = 0;;) {
      auto at = std::lower_bound(awake_.begin(), awake_.end(), next);
      if (at == awake_.end()) return;
      next = *at + 1;
      Peer& peer = *peers_[*at].peer;
      peer.onTimer(now);
      settle();
      peer.connect(now);
      after(peer);
    }
  }
  /// Wakes the peer: it may have something to send, or another deadline.
  void wake(const Peer& peer);

  /// Wakes the peer of this session, if the session still exists.
  void wakeSession(uint32_t session) {
    if (const Peer* peer = find(session).peer) wake(*peer);
  }
  /// The session with this id and its peer; null pointers: it does not exist.
  SessionIndex::Entry find(uint32_t session) const { return sessions_.find(session); }

  /// The next datagram, of the peer whose turn it is, or of the next one that has any. False when
  /// no peer has one.
  bool pollDatagram(Datagram& out, Time now);
  Time nextDeadline(Time now) const;
  /// The smallest inner MTU in bytes of all sessions that carry data; 0: there is no such session.
  size_t innerMtu() const;
  /// The drops of all sessions, also of those that have ended.
  DropCounts drops() const;

 private:
  using Place = uint32_t;
  struct Entry {
    std::unique_ptr<Peer> peer;
    size_t mtu = 0;  ///< at rest: the inner MTU of its session; 0: no session
  };

  void wakeAll();
  void wakeDue(Time now);
  std::optional<Time> restsUntil(const Entry& entry, uint64_t exhausted, Time now) const;
  void rest(size_t awakeAt, Time deadline);

  SessionIndex sessions_;
  AttemptIndex attempts_;
  PeerContext context_;
  std::vector<Entry> peers_;              ///< in the order of the configuration
  std::vector<Place> awake_;              ///< positions of peers, ascending
  DeadlineHeap resting_;                  ///< the other positions, by deadline
  std::map<size_t, size_t> restingMtus_;  ///< number of peers in resting_ with each inner MTU
  bool settingsAreNew_ = false;           ///< settings have changed since the last timer call
  size_t turn_ = 0;                       ///< position of the peer that is polled first
};

}  // namespace braid
