#pragma once

// Tunnel is the interface of the protocol core to its drivers: the daemon, the tests and the
// simulator. A driver calls its methods in this order, forever:
//
//     setters   setPeers, setListening, setUplinks, ...    at start and on reload
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
//                           +-> restart notice, key notice: the Peer whose session it ends
//
// Life: a new tunnel has no peers and sends nothing. It begins handshakes with every peer that has
// endpoints, over all usable uplinks; a peer without endpoints must come to this gateway, which it
// can while this one listens. Each peer has at most one session that carries data. close() sends
// CLOSE to all peers; the destructor sends nothing.
//
// Invariants: time never runs backwards inside the core (a `now` earlier than the previous one
// counts as the previous one). Only the poll... methods hand out datagrams, inner packets and
// events. What strangers send costs no more state than the bounds in peer/accepting.h. A session's
// id is known here exactly as long as the session lives.

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/packet.h"
#include "base/time.h"
#include "inet/addresses.h"
#include "tunnel/api/options.h"
#include "tunnel/api/status.h"
#include "tunnel/api/streams.h"
#include "tunnel/peer/load_test.h"
#include "tunnel/wire/secrets.h"

namespace braid {

class HandshakeProvider;
class TraceSink;

/// The core: the peers, their sessions, and the forwarding of packets between them and the device.
class Tunnel final {
 public:
  /// Bytes that all sessions together may use to decode and to put packets in order, the packets
  /// themselves not counted. Chosen: full decode buffers for about a hundred subflows.
  static constexpr size_t kMemory = size_t{256} << 20;

  /// `pool` and `handshakes` must outlive the tunnel. All random numbers inside derive from `key`.
  Tunnel(TunnelOptions options, PacketPool& pool, HandshakeProvider& handshakes,
         const RandomKey& key);
  ~Tunnel();

  /// Replaces the peers. A peer with the same pin and the same pre-shared key as before keeps its
  /// sessions; with another pre-shared key they end, and new ones begin.
  void setPeers(std::vector<PeerOptions> peers, Time now);
  /// Whether other gateways may begin sessions with this one; at first they may. Otherwise it
  /// answers no handshake that it has not begun itself.
  void setListening(bool on);
  /// Replaces the uplinks. Subflows on sockets that stay are not interrupted.
  void setUplinks(std::vector<UplinkSpec> uplinks, Time now);
  /// Begins a new period of a metered uplink, of which `used` bytes are already used.
  void resetMeter(std::string_view uplink, uint64_t used, Time now);
  /// Takes over all options that may change at run time: all except the mode, the MTUs, `maxFlows`,
  /// `decodeBuffer`, `firstUpload` and `allHeldBytes` of streams, and the table sizes
  /// of the ack shim. An ack shim that is switched off forgets its flows and counters.
  void setTunables(const TunnelOptions& options);
  /// From now on `sink` gets an event for each decision of loss recovery; nullptr ends that. The
  /// sink must outlive the tunnel or be unset.
  void setTrace(TraceSink* sink);
  /// Sends restart notices to the initiators that were connected to this gateway before it
  /// restarted: `initiators` is what knownInitiators() returned then. Call it after setPeers(): a
  /// peer that is no longer configured, or has endpoints now, gets none.
  void sendRestartNotices(std::vector<KnownInitiator> initiators, Time now);
  /// Another copy of this gateway may go on with the same keys and random numbers, or this one may
  /// go on from an earlier state. Ends all sessions and handshakes without another datagram under
  /// their keys, and begins new ones; initiators get a restart notice. `why` is a part of a log
  /// line. All random numbers come from `key` from now on.
  void forgetKeys(const std::string& why, const RandomKey& key, Time now);
  /// Sets the networks on this side, this host's own addresses included. No peer may send from
  /// them, however wide its prefixes are, and no packet for them is sent to a peer. A peer's longer
  /// prefix inside such a network still belongs to that peer.
  void setLocalNetworks(std::vector<Prefix> networks);

  /// A packet (TUN) or frame (TAP) from the device.
  void onInnerPacket(Packet packet, Time now);
  /// A datagram from a socket, with the ECN bits of its IP header. Returns why it was not used, if
  /// it names a session.
  std::optional<Drop> onDatagram(const Route& from, Ecn ecn, Packet datagram, Time now);
  void onTimer(Time now);
  /// The kernel refused a datagram of pollDatagram() because of its route (ENETUNREACH, ENODEV,
  /// EPERM, ...).
  void onSendError(const Datagram& refused, Time now);
  /// The kernel refused a datagram of pollDatagram() because of its size (EMSGSIZE).
  void onTooBig(const Datagram& refused, Time now);
  /// The streams that cross the tunnel, and their events.
  StreamApi& streams();
  /// Tells every peer that this gateway stops. Poll datagrams once more to send that; nothing is
  /// sent afterwards.
  void close();

  bool pollDatagram(Datagram& out, Time now);
  bool pollInnerPacket(Packet& out);
  bool pollEvent(Event& out);

  Time nextDeadline() const;
  /// The smallest inner MTU of the peers that are up, in bytes, to be set on the device. With no
  /// peer up: the value assumed for a path before its MTU search.
  size_t innerMtu() const;
  /// The names of the peers that are up. Events report changes, but may be lost (EventQueue).
  std::set<std::string> peersUp() const;
  /// Whether some peer has a path that answers.
  bool answers() const;
  /// The peers that have connected to this gateway, with what sendRestartNotices() needs after a
  /// restart.
  std::vector<KnownInitiator> knownInitiators(Time now) const;
  /// Everything an operator may ask for. `flows`: inner flows to list of all peers together, those
  /// with most bytes. Only the 16 * `flows` most recently used ones are looked at.
  TunnelStatus status(Time now, size_t flows = 0) const;
  /// Like status(), but without the peers.
  TunnelStatus wholeStatus() const;
  /// Names of the peers in the order of setPeers().
  std::vector<std::string> peerNames() const;
  size_t peerCount() const;
  /// Status of one peer, with at most `flows` inner flows. `position`: below peerCount(), in the
  /// order of setPeers().
  PeerStatus peerStatus(size_t position, Time now, size_t flows = 0) const;
  /// The load test of a peer's paths. After a test has begun, poll datagrams.
  PeerLoadTest& loadTest();
  /// The meters of the metered uplinks: the same as in status(), but cheaper.
  std::vector<MeterStatus> meters() const;
  /// What each uplink has carried since it was added.
  std::vector<UplinkBytes> carried() const;

 private:
  class Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace braid
