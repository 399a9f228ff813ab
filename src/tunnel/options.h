#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ackshim/options.h"
#include "base/time.h"
#include "inet/endpoint.h"
#include "inet/frame.h"
#include "inet/prefix.h"
#include "tunnel/session/session_options.h"
#include "tunnel/wire/secrets.h"

namespace braid {

/// What a gateway with a TAP device lets pass between the sites (FrameSwitch).
struct BridgeOptions {
  /// EtherTypes that cross, both ways: of the frame, or behind its VLAN tags.
  std::vector<uint16_t> etherTypes{Frame::kIpV4, Frame::kArp, Frame::kIpV6};
  bool allTypes = false;      ///< all of them do, frames of IEEE 802.3 with a length among them
  bool spanningTree = false;  ///< and so do the frames by which bridges find loops (IEEE 802.1D)
  /// An address is behind the place where it was heard of until it has been silent there for so long.
  Duration macAge = 300s;
  uint32_t floodLimit = 1000;  ///< frames for all that one peer, or the device, may send in a second
};

/// Settings of the whole tunnel. Ranges are checked by the configuration reader.
struct TunnelOptions : SessionOptions {
  bool ecnProxy = true;    ///< speak ECN for local hosts that do not (ecn_proxy.h)
  bool ackShim = true;     ///< wake local TCP senders (docs/ackshim.md)
  AckShimOptions shim{};   ///< its settings
  BridgeOptions bridge{};  ///< kTap only
  /// A peer that was out of use takes over again when it has been well for so long (PeerGroups).
  Duration returnAfter = 30s;
};

/// What the configuration says of one peer.
struct PeerOptions {
  std::string name;
  Pin pin{};
  std::vector<Endpoint> endpoints;  ///< where to reach the peer; empty: it must come to us
  std::vector<Prefix>
      prefixes;              ///< inner addresses behind the peer: routed there, and enforced on what it sends
  Duration keepalive = 10s;  ///< idle subflows send a PING so often; 0: never
  std::string group{};  ///< peers of one group stand for each other (PeerGroups); empty: this one has none
};

}  // namespace braid
