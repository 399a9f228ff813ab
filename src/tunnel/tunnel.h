#pragma once

// Tunnel is the interface of the protocol core to its drivers: the daemon, the tests and the
// simulator. A driver calls its methods in this order, forever:
//
//     setters   setPeers, setUplinks, setTunables, ...     at start and on reload
//     on...     onInnerPacket, onDatagram, onTimer,        when something happened, with its time
//               onSendError, onTooBig
//     poll...   pollDatagram, pollInnerPacket, pollEvent,  after every batch of on... calls, each
//               streams().pollStream                       until it returns false
//     getters   nextDeadline, innerMtu, status, meters     after polling; onTimer must be called at
//                                                          nextDeadline() at the latest
//
// The way of the packets:
//
//     device -- onInnerPacket --> Forwarder --> Peer's Session --> pollDatagram --> socket
//
//     socket -- onDatagram -+-> Session (id in header) --> Forwarder --> pollInnerPacket --> device
//                           +-> handshake: the Peer that began it, else the HandshakeServer
//                           +-> restart notice: the Peer whose session it ends
//
// Life: a new tunnel has no peers and sends nothing. It begins handshakes with every peer that has
// endpoints, over all usable uplinks; a peer without endpoints must come to this gateway. Each peer
// has at most one session that carries data. close() sends CLOSE to all peers; the destructor sends
// nothing.
//
// Invariants: time never runs backwards inside the core (a `now` earlier than the previous one
// counts as the previous one). Only the poll... methods hand out datagrams, inner packets and
// events. What strangers send costs no more state than the bounds in peer/accepting.h. A session's
// id is known here exactly as long as the session lives.

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/memory.h"
#include "base/packet.h"
#include "base/time.h"
#include "inet/addresses.h"
#include "tunnel/api/io.h"
#include "tunnel/api/options.h"
#include "tunnel/api/status.h"
#include "tunnel/api/streams.h"
#include "tunnel/forward/forwarder.h"
#include "tunnel/peer/accepting.h"
#include "tunnel/peer/handshake.h"
#include "tunnel/peer/peer.h"
#include "tunnel/peer/peer_groups.h"
#include "tunnel/peer/peer_set.h"
#include "tunnel/peer/restart_notice.h"
#include "tunnel/peer/uplinks.h"
#include "tunnel/stream/registry.h"
#include "tunnel/wire/secrets.h"

namespace braid {

class Forwarder;
class PeerSet;
class Stream;
class Session;

/// The streams of all peers in one interface for the tunnel's driver: finds the peer behind a
/// destination, and the stream of a handle.
class TunnelStreams final : public StreamApi {
 public:
  /// All arguments must outlive this object.
  TunnelStreams(const TunnelOptions& options, PeerSet& peers, const Forwarder& forwarder)
      : options_(options), peers_(peers), forwarder_(forwarder) {}

  /// The registry through which sessions and the driver exchange stream events. It outlives the
  /// sessions.
  StreamRegistry& registry() { return registry_; }
  const StreamRegistry& registry() const { return registry_; }
  /// Wakes the peers that have streams to which the driver has given work. Call it before datagrams
  /// are polled.
  void wakePeers();

  // StreamApi
  bool canOpen(const Address& destination) const override;
  StreamHandle open(const StreamEnds& ends, Time now) override;
  const StreamEnds* ends(StreamHandle stream) const override;
  size_t writable(StreamHandle stream, size_t wanted) override;
  size_t room(StreamHandle stream, std::span<ByteSpan> buffers) override;
  void commit(StreamHandle stream, size_t bytes, Time now) override;
  size_t write(StreamHandle stream, ByteView bytes, Time now) override;
  void finish(StreamHandle stream, Time now) override;
  void reset(StreamHandle stream, StreamCause cause, Time now) override;
  size_t readable(StreamHandle stream) const override;
  size_t peek(StreamHandle stream, std::span<ByteView> views) const override;
  void consume(StreamHandle stream, size_t bytes, Time now) override;
  bool isAtEnd(StreamHandle stream) const override;
  bool pollStream(StreamEvent& out) override;

 private:
  Session* sessionFor(const Address& destination) const;
  bool isAllowed(const Stream& stream) const;

  const TunnelOptions& options_;
  PeerSet& peers_;
  const Forwarder& forwarder_;
  StreamRegistry registry_;
};

/// The core: the peers, their sessions, and the forwarding of packets between them and the device.
class Tunnel final : private PeerOwner {
 public:
  /// Bytes that all sessions together may use to decode and to put packets in order, the packets
  /// themselves not counted. Chosen: full decode buffers for about a hundred subflows.
  static constexpr size_t kMemory = size_t{256} << 20;

  /// `pool` and `handshakes` must outlive the tunnel. All random numbers inside derive from `key`.
  Tunnel(TunnelOptions options, PacketPool& pool, HandshakeProvider& handshakes,
         const RandomKey& key);
  ~Tunnel() override;

  /// Replaces the peers. A peer with the same pin as before keeps its sessions.
  void setPeers(std::vector<PeerOptions> peers, Time now);
  /// Replaces the uplinks. Subflows on sockets that stay are not interrupted.
  void setUplinks(std::vector<UplinkSpec> uplinks, Time now);
  /// Begins a new period of a metered uplink, of which `used` bytes are already used.
  void resetMeter(std::string_view uplink, uint64_t used, Time now);
  /// Takes over all options that may change at run time: all except the mode, the MTUs and the
  /// table sizes. An ack shim that is switched off forgets its flows and counters.
  void setTunables(const TunnelOptions& options);
  /// From now on `sink` gets an event for each decision of loss recovery; nullptr ends that. The
  /// sink must outlive the tunnel or be unset.
  void setTrace(TraceSink* sink) { options_.trace = sink; }
  /// Sends restart notices to the initiators that were connected to this gateway before it
  /// restarted: `callers` is what callers() returned then. Call it after setPeers(): a peer that is
  /// no longer configured, or has endpoints now, gets none.
  void callBack(std::vector<KnownInitiator> callers, Time now);
  /// Sets the networks on this side, this host's own addresses included. No peer may send from
  /// them, however wide its prefixes are, and no packet for them is sent to a peer. A peer's longer
  /// prefix inside such a network still belongs to that peer.
  void setLocalNetworks(std::vector<Prefix> networks) {
    forwarder_.setLocalNetworks(std::move(networks));
  }

  /// A packet (TUN) or frame (TAP) from the device.
  void onInnerPacket(Packet packet, Time now);
  /// A datagram from a socket, with the ECN bits of its IP header.
  void onDatagram(const Route& from, Ecn ecn, Packet datagram, Time now);
  void onTimer(Time now);
  /// The kernel refused a datagram of pollDatagram() because of its route (ENETUNREACH, ENODEV,
  /// EPERM, ...).
  void onSendError(const Datagram& refused, Time now) { peers_.onSendError(refused, forward(now)); }
  /// The kernel refused a datagram of pollDatagram() because of its size (EMSGSIZE).
  void onTooBig(const Datagram& refused, Time now) { peers_.onTooBig(refused, forward(now)); }
  /// The streams that cross the tunnel, and their events.
  StreamApi& streams() { return streams_; }
  /// Tells every peer that this gateway stops. Poll datagrams once more to send that; nothing is
  /// sent afterwards.
  void close() { peers_.close(); }

  bool pollDatagram(Datagram& out, Time now);
  bool pollInnerPacket(Packet& out) { return forwarder_.pollInnerPacket(out); }
  bool pollEvent(Event& out) { return events_.poll(out); }

  Time nextDeadline() const;
  /// The smallest inner MTU of the peers that are up, in bytes, to be set on the device. With no
  /// peer up: the value assumed for a path before its MTU search.
  size_t innerMtu() const;
  /// The names of the peers that are up. Events report changes, but may be lost (EventQueue).
  std::set<std::string> peersUp() const;
  /// The peers that have connected to this gateway, with what callBack() needs after a restart.
  std::vector<KnownInitiator> callers(Time now) const;
  /// Everything an operator may ask for. `flows`: inner flows to list of all peers together, those
  /// with most bytes. Only the 16 * `flows` most recently used ones are looked at.
  TunnelStatus status(Time now, size_t flows = 0) const;
  /// Like status(), but without the peers.
  TunnelStatus wholeStatus() const;
  /// Names of the peers in the order of setPeers().
  std::vector<std::string> peerNames() const;
  size_t peerCount() const { return peers_.size(); }
  /// Status of one peer, with at most `flows` inner flows. `position`: below peerCount(), in the
  /// order of setPeers().
  PeerStatus peerStatus(size_t position, Time now, size_t flows = 0) const {
    return peers_.at(position).status(now, flows);
  }
  /// The load test of a peer's paths. After a test has begun, poll datagrams.
  PeerLoadTest& loadTest() { return loadTest_; }
  /// The meters of the metered uplinks: the same as in status(), but cheaper.
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
  void onReturned(Peer& to, StagedPacket waiting) override {
    forwarder_.onReturned(to, std::move(waiting), now_);
  }
  void onPacketDropped(ByteView packet) override { forwarder_.onPacketDropped(packet, now_); }
  void onPeerChanged(Peer& peer) override { groups_.onChange(peer, now_); }

  TunnelOptions options_;
  PacketPool& pool_;
  HandshakeProvider& handshakes_;
  SecretRandom random_;
  Time now_ = Time::min();
  MemoryQuota memory_{kMemory};
  MemoryQuota streamMemory_;
  TunnelStreams streams_;
  UplinkMeters uplinks_;
  EventQueue events_;
  PeerSet peers_;
  PeerLoadTest loadTest_{peers_};
  PeerGroups groups_;
  HandshakeServer handshakeServer_;
  RestartNotices calls_;
  /// Sessions take turns with handshake replies and restart notices: true when the next poll asks
  /// for a reply first.
  bool replyNext_ = false;
  Forwarder forwarder_;
  DropCounts drops_{};
};

}  // namespace braid
