#pragma once

// The core's face to its drivers. A driver calls its methods in this order, forever:
//
//     setters   setPeers, setUplinks, setTunables, ...     at start and on reload
//     on...     onInnerPacket, onDatagram, onTimer,        whenever something happened, with its time
//               onSendError, onTooBig
//     poll...   pollDatagram, pollInnerPacket, pollEvent,  after every batch of the above, each until it
//               streams().pollStream                       gives false
//     getters   nextDeadline, innerMtu, status, meters     after polling; onTimer is to be called at
//                                                          nextDeadline() at the latest
//
// What flows through:
//
//     device -- onInnerPacket --> Forwarder --> Peer's Session --> pollDatagram --> socket
//     socket -- onDatagram --> Session, found by the id in the header --> Forwarder --> pollInnerPacket --> device
//                         \--> or a handshake: of a Peer that began it, else of the Responders
//                         \--> or a call to return: of a Peer that has restarted
//
// Life: a tunnel begins empty and silent. A peer with endpoints is called on every usable uplink, one without
// is waited for; each has at most one session that carries data. close() says farewell; the destructor says
// nothing.
//
// What always holds: time never runs backwards inside (a `now` before an earlier one counts as that earlier
// one); nothing is sent, delivered or reported but by the poll... methods; what a stranger sends costs no more
// state than the bounds in responders.h; a session's id is known here exactly as long as the session lives.

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/budget.h"
#include "base/packet.h"
#include "base/time.h"
#include "inet/endpoint.h"
#include "tunnel/forwarder.h"
#include "tunnel/handshake.h"
#include "tunnel/io.h"
#include "tunnel/options.h"
#include "tunnel/peer_groups.h"
#include "tunnel/peer_load_test.h"
#include "tunnel/peer_owner.h"
#include "tunnel/peer_set.h"
#include "tunnel/responders.h"
#include "tunnel/return_calls.h"
#include "tunnel/status.h"
#include "tunnel/tunnel_streams.h"
#include "tunnel/uplink_accounts.h"
#include "tunnel/wire/secret_random.h"

namespace braid {

/// The core: peers, their sessions and the way of packets between them and the device.
class Tunnel final : private PeerOwner {
 public:
  /// Bytes that all sessions together keep to decode, and to put packets in order, the packets themselves not counted.
  /// Ours: full buffers to decode for some hundred subflows.
  static constexpr size_t kMemory = size_t{256} << 20;

  /// `pool` and `handshakes` must outlive the tunnel. All that is random in it follows from `key`.
  Tunnel(TunnelOptions options, PacketPool& pool, HandshakeProvider& handshakes, const RandomKey& key);
  ~Tunnel() override;

  /// Replaces the peers; sessions of peers whose pin stays go on.
  void setPeers(std::vector<PeerOptions> peers, Time now);
  /// Replaces the uplinks; subflows on sockets that stay go on.
  void setUplinks(std::vector<UplinkSpec> uplinks, Time now);
  /// A new period of a metered uplink begins, of which `used` bytes are gone.
  void resetMeter(std::string_view uplink, uint64_t used, Time now);
  /// Takes over what may change at run time: everything but the mode, the MTUs and the table sizes. An ack
  /// shim that is switched off forgets its flows and counters.
  void setTunables(const TunnelOptions& options);
  /// `sink` gets an event for each decision of recovery from now on; nullptr: no more. The sink must outlive the
  /// tunnel or be unset.
  void setTrace(TraceSink* sink) { options_.trace = sink; }
  /// Calls back who came to this gateway before it was restarted, as callers() said then. After setPeers(): a peer
  /// that is not configured any more, or has an endpoint, is not called.
  void callBack(std::vector<Caller> callers, Time now);
  /// Networks on this side, own addresses among them: no peer may send from them, however wide its prefixes are, and
  /// nothing for them goes to a peer. A longer prefix of a peer counts for itself.
  void setLocalNetworks(std::vector<Prefix> networks) { forwarder_.setLocalNetworks(std::move(networks)); }

  /// A packet (TUN) or frame (TAP) from the device.
  void onInnerPacket(Packet packet, Time now);
  /// How a datagram that came would be opened now; empty: not at all. The driver may do that work on any thread, and
  /// then calls onDatagram() with it; in the order in which datagrams came, as always.
  CipherWork opening(ByteView datagram) const;
  /// A datagram from a socket with the ECN bits of its IP header. `opened`: its opening(), done; nullptr: there was
  /// none.
  void onDatagram(const Route& from, Ecn ecn, Packet datagram, Time now, const CipherWork* opened = nullptr);
  void onTimer(Time now);
  /// The kernel refused a datagram of pollDatagram() because of its route (ENETUNREACH, ENODEV, EPERM, ...).
  void onSendError(const Datagram& refused, Time now) { peers_.onSendError(refused, forward(now)); }
  /// Or because of its size (EMSGSIZE).
  void onTooBig(const Datagram& refused, Time now) { peers_.onTooBig(refused, forward(now)); }
  /// The streams that cross the tunnel; events of theirs are polled there.
  StreamLanes& streams() { return streams_; }
  /// Tells every peer that this gateway stops. Poll datagrams once more; nothing else is sent afterwards.
  void close() { peers_.close(); }

  bool pollDatagram(Datagram& out, Time now);
  bool pollInnerPacket(Packet& out) { return forwarder_.pollInnerPacket(out); }
  bool pollEvent(Event& out) { return events_.poll(out); }

  Time nextDeadline() const;
  /// The smallest inner MTU of the peers that are up, for the device; that of an untried path when none is up.
  size_t innerMtu() const;
  /// The names of the peers that are up. Events tell of changes, and some may be lost (EventQueue).
  std::set<std::string> peersUp() const;
  /// The peers that are here because they came to us, and how to call them back after a restart.
  std::vector<Caller> callers(Time now) const;
  /// `flows`: how many inner flows to list, of all peers together: those with the most bytes. At most so many
  /// times sixteen are looked at, the ones used last.
  TunnelStatus status(Time now, size_t flows = 0) const;
  /// The same without the peers.
  TunnelStatus wholeStatus() const;
  /// In the order of setPeers().
  std::vector<std::string> peerNames() const;
  size_t peerCount() const { return peers_.size(); }
  /// One of them, with so many inner flows; `position` below peerCount(), in the order of setPeers().
  PeerStatus peerStatus(size_t position, Time now, size_t flows = 0) const {
    return peers_.at(position).status(now, flows);
  }
  /// The load test of one of them. The peer is to be polled when it has begun.
  PeerLoadTest& loadTest() { return loadTest_; }
  /// The counts of the metered uplinks; cheaper than status(), which has them too.
  std::vector<MeterStatus> meters() const;

 private:
  void shareMemory(TunnelOptions& options);
  void count(const Route& route, size_t bytes, Time now);
  void onHandshake(const Route& from, ByteSpan bytes, Time now);
  bool pollReply(Datagram& out, Time now);
  void takeOutcomes(Time now);
  Time forward(Time now) { return now_ = std::max(now_, now); }

  // PeerOwner
  void onDelivered(Peer& from, Packet packet) override {
    forwarder_.onDelivered(from, std::move(packet), now_);
  }
  void onTooLarge(Peer& to, ByteView packet) override { forwarder_.onTooLarge(to, packet, now_); }
  void onReturned(Peer& to, WaitingPacket waiting) override {
    forwarder_.onReturned(to, std::move(waiting), now_);
  }
  void onPacketDropped(ByteView packet) override { forwarder_.onPacketDropped(packet, now_); }
  void onPeerChanged(Peer& peer) override { groups_.onChange(peer, now_); }

  TunnelOptions options_;
  PacketPool& pool_;
  HandshakeProvider& handshakes_;
  SecretRandom random_;
  Time now_ = Time::min();
  Budget memory_{kMemory};
  Budget streamMemory_;
  TunnelStreams streams_;
  UplinkAccounts uplinks_;
  EventQueue events_;
  PeerSet peers_;
  PeerLoadTest loadTest_{peers_};
  PeerGroups groups_;
  Responders responders_;
  ReturnCalls calls_;
  bool replyNext_ = false;  ///< sessions, and the answers to handshakes with the calls to return, take turns
  Forwarder forwarder_;
  DropCounts drops_{};
};

}  // namespace braid
