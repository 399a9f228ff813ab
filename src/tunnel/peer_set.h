#pragma once

// The peers of a tunnel, and which of them need attention.
//
// A peer is awake or at rest. What happens to a peer (a datagram, a packet for it, new settings, its deadline)
// wakes it. Peers that are awake are polled in every round and get every timer call. A peer goes to rest as soon
// as a poll gives nothing, if no timer is due; what it has sent may be without an answer, and what it has to send may
// wait for one, or for its pacer. Peers at rest cost nothing but their place in a heap of deadlines: the work for a
// packet or a deadline does not grow with their number.
//
// Always holds: a peer at rest would send nothing before its deadline, however often it was asked, and learn no more
// than that its paths are idle, but for tenths of a millisecond: where another peer keeps the ceiling of a shared uplink
// closed for longer, where the policy looks at the spare windows of paths (fuso, cofuso), and the 100 us for which a
// scheduler's word on a flow that waits for a better path holds. The order of service is that of a round over all.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/deadline_heap.h"
#include "tunnel/peer.h"

namespace braid {

class PeerSet {
 public:
  /// All of the parameters must outlive the set.
  PeerSet(const TunnelOptions& options, PacketPool& pool, HandshakeProvider& handshakes, PeerOwner& owner,
          EventQueue& events)
      : context_{options, pool, handshakes, owner, events, sessions_, attempts_} {}

  size_t size() const { return peers_.size(); }
  const Peer& at(size_t position) const { return *peers_[position].peer; }
  /// How many peers are not at rest.
  size_t awake() const { return awake_.size(); }
  template <typename F>
  void forEach(F&& visit) const {
    for (const Entry& entry : peers_) visit(*entry.peer);
  }

  /// Replaces the peers; sessions of peers whose pin stays go on. Gives back the peers that are no more.
  [[nodiscard]] std::vector<std::unique_ptr<Peer>> replace(std::vector<PeerOptions> peers,
                                                           const std::vector<UplinkAccount>& uplinks,
                                                           SecretRandom& random, Time now);
  /// Ends all peers and their sessions.
  void clear();
  void setUplinks(const std::vector<UplinkAccount>& uplinks, Time now);
  void setTunables();
  void close();

  /// How a session's datagram would be opened now; empty: not at all.
  CipherWork opening(const DatagramHeader& header) const;
  /// A session's datagram: nullopt when it was used, else why not. `opened`: as Session.
  std::optional<Drop> onDatagram(const DatagramHeader& header, const Route& from, Ecn ecn, Packet datagram,
                                 Time now, const CipherWork* opened = nullptr);
  /// True when the datagram belongs to a handshake that one of the peers began: that peer takes it.
  bool onHandshakeDatagram(const Route& from, ByteView bytes, Time now);
  /// True when one of the peers has restarted and calls back: what this side had with it is over.
  bool onReturnCall(const Route& from, const ReturnCall& call, Time now);
  /// A handshake that a peer began is done. A peer that is not configured any more gets no session.
  void onAccepted(const SessionSecrets& secrets, Time now);
  /// The kernel refused a datagram that one of the peers sent, because of its route. Told is the peer of the
  /// session, or whoever tries a handshake on the route. Others on it, a session that came after this one, and
  /// who answers handshakes learn it by their own next datagram.
  void onSendError(const Datagram& refused, Time now);
  /// Or because of its size.
  void onTooBig(const Datagram& refused, Time now);
  void onTimer(Time now);
  /// Something happens to this peer, which may then have something to send, and another deadline.
  void wake(const Peer& peer);

  /// The peer of this session, if there still is one, as above.
  void wakeSession(uint32_t session) {
    if (const Peer* peer = peerOf(session)) wake(*peer);
  }
  /// nullptr: there is no such session.
  const Peer* peerOf(uint32_t session) const { return sessions_.find(session).peer; }

  /// The next datagram: of the peer whose turn it is, or of the next one that has any. False: none has.
  bool pollDatagram(Datagram& out, Time now);
  Time nextDeadline(Time now) const;
  /// The smallest inner MTU of the sessions to send by, bytes; 0: there is no session.
  size_t innerMtu() const;
  /// What all sessions threw away, those that have ended included.
  DropCounts drops() const;

 private:
  using Place = uint32_t;
  struct Entry {
    std::unique_ptr<Peer> peer;
    size_t mtu = 0;  ///< at rest: its session's inner MTU, 0 without one
  };

  template <typename F>
  void forSender(const Datagram& sent, F&& visit) const;
  void wakeAll();
  void wakeDue(Time now);
  std::optional<Time> restsUntil(const Entry& entry, uint64_t exhausted, Time now) const;
  void rest(size_t awakeAt, Time deadline);

  SessionIndex sessions_;
  AttemptIndex attempts_;
  PeerContext context_;
  std::vector<Entry> peers_;              ///< in the order of the configuration
  std::vector<Place> awake_;              ///< in that order
  DeadlineHeap resting_;                  ///< the others, by place
  std::map<size_t, size_t> restingMtus_;  ///< how many of those have a session with that inner MTU
  bool settingsAreNew_ = false;           ///< no timer call came since the last change of settings
  size_t turn_ = 0;                       ///< the place that is asked first for a datagram
};

}  // namespace braid
