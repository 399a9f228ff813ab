#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ackshim/options.h"
#include "base/time.h"
#include "inet/addresses.h"
#include "inet/frame.h"
#include "tunnel/session/session_options.h"
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
  bool ecnProxy = true;    ///< speak ECN for local hosts that do not (forward/ecn_proxy.h)
  bool ackShim = true;     ///< wake local TCP senders (docs/ackshim.md)
  AckShimOptions shim{};   ///< settings of the ack shim
  BridgeOptions bridge{};  ///< only used with a TAP device (Mode::kTap)
  /// A peer that was replaced by another one of its group takes over again after it has been usable
  /// for this long without a break (PeerGroups).
  Duration returnAfter = 30s;
};

/// The configuration of one peer.
struct PeerOptions {
  std::string name;
  Pin pin{};
  std::vector<Endpoint> endpoints;  ///< where to reach the peer; empty: the peer must connect to us
  /// Inner addresses behind the peer: packets for them are routed to it, and the source addresses
  /// of what it sends are checked against them.
  std::vector<Prefix> prefixes;
  Duration keepalive = 10s;  ///< idle subflows send a PING at this interval; 0: never
  /// Peers with the same group name replace each other on failure (PeerGroups); empty: no group.
  std::string group{};
};

}  // namespace braid
