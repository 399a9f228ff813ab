#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ackshim/options.h"
#include "base/time.h"
#include "inet/addresses.h"
#include "inet/frame.h"
#include "scheduler/path/path_tiers.h"
#include "tunnel/session/event.h"
#include "tunnel/session/session_options.h"
#include "tunnel/subflow/route.h"
#include "tunnel/wire/handshake_envelope.h"
#include "tunnel/wire/secrets.h"

namespace braid {

/// What a gateway with a TAP device lets pass between the sites (LearningBridge).
struct BridgeOptions {
  /// EtherTypes that cross in both directions: that of the frame, or the one behind its VLAN tags.
  std::vector<uint16_t> etherTypes{Frame::kIpV4, Frame::kArp, Frame::kIpV6};
  bool allTypes = false;      ///< all EtherTypes cross, also IEEE 802.3 frames with a length field
  bool spanningTree = false;  ///< spanning-tree frames (IEEE 802.1D) cross, too
  /// A MAC address counts as unknown this long after its last frame: frames to it are flooded
  /// again, and it may appear at another port.
  Duration macAge = 300s;
  /// Broadcast, multicast and unknown-destination frames that one peer, or the device, may send per
  /// second.
  uint32_t floodLimit = 1000;
};

/// Settings of the whole tunnel. Ranges are checked by the configuration reader.
struct TunnelOptions : SessionOptions {
  bool ecnProxy = true;       ///< speak ECN for local hosts that do not (forward/ecn_proxy.h)
  bool betweenPeers = false;  ///< a peer may reach the networks and stations of other peers
  bool ackShim = true;        ///< wake local TCP senders (docs/ackshim.md)
  AckShimOptions shim{};      ///< settings of the ack shim
  BridgeOptions bridge{};     ///< only used with a TAP device (Mode::kTap)
  /// A peer that was replaced by another one of its group takes over again after it has been usable
  /// for this long without a break (PeerGroups).
  Duration returnAfter = 30s;
};

/// The configuration of one peer.
struct PeerOptions {
  std::string name;
  Pin pin{};
  std::vector<Endpoint> endpoints;  ///< where to reach the peer, over any uplink
  /// Inner addresses behind the peer: packets for them are routed to it, and the source addresses
  /// of what it sends are checked against them.
  std::vector<Prefix> prefixes;
  Duration keepalive = 10s;  ///< idle subflows send a PING at this interval; 0: never
  /// Peers with the same group name replace each other on failure (PeerGroups); empty: no group.
  std::string group{};
  /// Mixed into the secrets of every handshake with the peer, which must have the same one;
  /// nullopt: none.
  std::optional<PresharedKey> psk{};
  /// Where to reach the peer over one uplink only, by the uplink's name: what the peer's host name
  /// means there.
  std::map<std::string, std::vector<Endpoint>> endpointsOver{};
  /// Without any endpoint the peer must connect to us.
  bool hasEndpoints() const { return !endpoints.empty() || !endpointsOver.empty(); }
};

/// A local interface from which an initiator may start subflows. Each of its sockets carries one
/// subflow per endpoint of each peer, if the endpoint has the socket's address family.
struct UplinkSpec {
  std::string name;
  struct Socket {
    SocketId id = 0;
    Address::Family family = Address::Family::kV4;
  };
  std::vector<Socket> sockets;
  bool up = true;               ///< the interface has link and an address
  PathPreference preference{};  ///< its field `uplink` is ignored
  /// Bytes per second that a peer may send to this uplink, as PathPreference::ceiling; 0: no limit.
  uint64_t peerCeiling = 0;
  /// Limits the bytes that the uplink may carry in a period, in both directions together, IP and
  /// UDP headers included. An uplink that has reached its cap counts as down.
  struct Meter {
    uint64_t cap = 0;
    uint64_t used = 0;  ///< in the present period; read only when the uplink or its meter is new
  };
  std::optional<Meter> meter = std::nullopt;
};

/// A peer that connected to this gateway, with what must be known of it after a restart.
struct KnownInitiator {
  /// Maximum number of routes of a peer that are kept.
  static constexpr size_t kMostRoutes = 8;

  Pin pin{};
  RestartNotice notice;       ///< ends the peer's session
  std::vector<Route> routes;  ///< where the peer has proven that it receives

  bool operator==(const KnownInitiator&) const = default;
};

}  // namespace braid
