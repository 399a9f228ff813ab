#pragma once

#include <string>
#include <vector>

#include "gateway/config/config.h"
#include "host/host_numbers.h"
#include "host/network.h"
#include "host/packet_filter.h"

namespace braid {

/// What a gateway has at its host for `device.routes`: routes into the tunnel, the rules that lead
/// to them, what may pass beside them, and the guard. A plain value; TunnelRoutes puts it into
/// effect.
struct RoutePlan {
  std::vector<RouteSpec> routes;
  std::vector<RuleSpec> rules;
  FilterRules filter;
  bool operator==(const RoutePlan&) const = default;
};

/// The present names of the uplinks' interfaces, one for each uplink: for parts that go by names. A
/// name that no interface has stays as it is configured, if an interface may come by it. Empty: the
/// interface is not known yet, and may be any.
std::vector<std::string> interfacesOf(const std::vector<UplinkConfig>& uplinks,
                                      const NetworkTable& host);

/// What a plan depends on besides configuration and host.
struct RouteSituation {
  std::string device;  ///< the name that the host gave the gateway's interface
  HostNumbers numbers;
  bool peerUp = false;
  std::vector<FilterRules::Reply> replies;  ///< marks of the uplinks
  /// Peers' names are asked for at a program of this host, which asks others without Braid's mark.
  bool asksHere = false;
  std::vector<Prefix> formerLans{};  ///< earlier lansForGuard()
};

/// The plan of a gateway that runs.
RoutePlan planRoutes(const Config& config, const NetworkTable& host,
                     const RouteSituation& situation);

/// The part of it that outlives the gateway: the guard of `when-down: block`. The host's network
/// may not be up yet. Empty for another configuration.
RoutePlan planGuard(const Config& config, const NetworkTable& host,
                    const RouteSituation& situation);

/// The host's interfaces other than the uplinks and the tunnel's. They point into `host`.
std::vector<const Link*> lanLinks(const Config& config, const NetworkTable& host,
                                  const std::string& device);
/// The networks at these interfaces, and `device.networks`.
std::vector<Prefix> lanNetworks(const Config& config, const NetworkTable& host,
                                const std::string& device);
/// The networks of LANs that a later guard should know which is made before the host's network:
/// those at interfaces that are no uplinks and have no default route of the family. Empty while an
/// uplink is absent, because any interface may turn out to be that.
std::vector<Prefix> lansForGuard(const Config& config, const NetworkTable& host,
                                 const std::string& device);

/// The networks on this gateway's side (Tunnel::setLocalNetworks): `device.networks`, the addresses
/// of the gateway's interface, and, unless that is a TAP device, which joins networks, those at the
/// host's interfaces other than the uplinks. A network that is among a peer's prefixes is the
/// peer's. Special networks count only in `device.networks`, where they open special destinations.
std::vector<Prefix> ownNetworks(const Config& config, const NetworkTable& host,
                                const std::string& device);

/// Whether replies to what comes in by the uplinks could go into the tunnel.
bool endangersReplies(const Config& config, const NetworkTable& host);

}  // namespace braid
