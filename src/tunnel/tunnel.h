#pragma once

// The core's face to its drivers. Methods come in four kinds, and a driver uses them so:
//   setters    setPeers, setUplinks, setTunables     at start and on reload
//   on...      onInnerPacket, onDatagram, onTimer, onSendError, onUplinkDown   whenever something happened, with the time of it
//   poll...    pollDatagram, pollInnerPacket, pollEvent     after every batch of on... calls, each until it gives false
//   getters    nextDeadline, status                  after polling: call onTimer at nextDeadline() at the latest
// Time never runs backwards inside: a `now` before an earlier one counts as that earlier one.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/packet.h"
#include "base/time.h"
#include "inet/endpoint.h"
#include "tunnel/handshake.h"
#include "tunnel/options.h"
#include "tunnel/route.h"
#include "tunnel/status.h"

namespace braid {

/// A datagram to send.
struct Datagram {
  Route route;
  Ecn ecn = Ecn::kNotEct;
  bool mtuProbe = false;   ///< set Don't Fragment; EMSGSIZE is no path failure
  Packet bytes;
};

/// One local interface that an initiator may start subflows from: each socket carries one subflow per endpoint of each
/// peer, of the socket's address family.
struct UplinkSpec {
  std::string name;
  struct Socket {
    SocketId id = 0;
    Address::Family family = Address::Family::kV4;
  };
  std::vector<Socket> sockets;
  bool up = true;          ///< link and address are there
};

/// Something worth a log line.
struct Event {
  enum class Kind : uint8_t { kPeerUp, kPeerDown, kHandshakeFailed, kSubflowUp, kSubflowSuspect, kSubflowFailed,
                              kSubflowBack, kAddressChanged, kRekeyed, kInnerMtu };
  Kind kind;
  std::string peer;
  std::string text;        ///< one line in plain words
};

class Peer;

class Tunnel {
 public:
  /// `pool` and `handshakes` must outlive the tunnel; `seed` should be unpredictable outside of tests.
  Tunnel(TunnelOptions options, PacketPool& pool, HandshakeProvider& handshakes, uint64_t seed);
  ~Tunnel();

  /// Replaces the peers; sessions of peers whose pin stays go on.
  void setPeers(std::vector<PeerOptions> peers, Time now);
  /// Replaces the uplinks; subflows on sockets that stay go on.
  void setUplinks(std::vector<UplinkSpec> uplinks, Time now);
  void setTunables(const TunnelOptions& options);

  /// A packet (TUN) or frame (TAP) from the device.
  void onInnerPacket(Packet packet, Time now);
  /// A datagram from a socket with the ECN bits of its IP header.
  void onDatagram(const Route& from, Ecn ecn, Packet datagram, Time now);
  void onTimer(Time now);
  /// The kernel refused a datagram on this route (ENETUNREACH, ENODEV, EPERM, ...).
  void onSendError(const Route& route, Time now);
  /// The kernel refused a datagram of this size with EMSGSIZE.
  void onTooBig(const Route& route, size_t size, Time now);

  bool pollDatagram(Datagram& out, Time now);
  bool pollInnerPacket(Packet& out);
  bool pollEvent(Event& out);

  Time nextDeadline() const;
  /// The smallest inner MTU that serves every peer that is up; what the device should be set to (TunnelOptions::mtu when none is up).
  size_t innerMtu() const;
  TunnelStatus status(Time now) const;
};

}  // namespace braid
