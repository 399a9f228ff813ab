#pragma once

// What a gateway needs the host's packet filter to let through.

#include <string>
#include <vector>

#include "gateway/config/config.h"
#include "host/linux/netlink.h"
#include "host/linux/nft_firewall.h"
#include "host/network.h"

namespace braid {

/// A rule that lets packets through, in no program's words yet.
struct PassRule {
  NftPacket::Hook hook = NftPacket::Hook::kForward;
  Address::Family family = Address::Family::kV4;
  std::string in{};   ///< empty: any
  std::string out{};  ///< empty: any; always so at kInput
  std::optional<Prefix> source{}, destination{};
  uint8_t protocol = 0;  ///< 0: any
  uint16_t firstPort = 0, lastPort = 0;
  uint32_t mark = 0, markMask = 0;  ///< mask 0: any mark
  bool isForAnswers = false;        ///< established connections only
  bool operator==(const PassRule&) const = default;
};

/// Something that must pass.
struct Opening {
  enum class Kind : uint8_t {
    kListen,   ///< peers' datagrams to `listen`
    kOut,      ///< from a LAN to the tunnel
    kAnswers,  ///< answers from the tunnel to a LAN, or from outside to the tunnel
    kIn,       ///< new connections from the tunnel to a LAN
    kNat,      ///< from the tunnel to outside (`nat`)
    kForward,  ///< from outside to a host behind the tunnel (`forwards`)
    kStreams,  ///< a LAN's connections that are taken over (`streams`)
  };
  Kind kind = Kind::kOut;
  PassRule rule;
  /// Packets by which it is tried whether something drops them.
  std::vector<NftPacket> samples;

  /// "packets from lan0 (192.168.1.0/24) to braid0"
  std::string toString() const;
};

/// Something that must pass, and what drops it.
struct Obstacle {
  Opening opening;
  NftDrop drop;
  uint16_t port = 0;  ///< kStreams: the port of the connections that are dropped
};

/// A LAN: one of `device.networks`, and an interface that leads to it.
struct Lan {
  Prefix network;
  const Link* link;
  bool isOnLink;  ///< the interface has an address in it
};
/// The LANs behind this gateway. A network that no interface leads to is not among them. `routes`:
/// those of the main table. The result points into `table`.
std::vector<Lan> lansOf(const Config& config, const NetworkTable& table,
                        const std::vector<FoundRoute>& routes);

/// All that this gateway needs. `routes`: those of the main table.
std::vector<Opening> openingsOf(const Config& config, const NetworkTable& table,
                                const std::vector<FoundRoute>& routes);
/// What drops it: one entry for each opening and each chain that drops one of its samples.
std::vector<Obstacle> obstaclesTo(const std::vector<Opening>& openings, const NftFirewall& wall);
/// The routes of the main table.
std::vector<FoundRoute> readMainRoutes();

}  // namespace braid
