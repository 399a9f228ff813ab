#pragma once

// The configurations that braidctl writes. They have comments for people, and the same reader reads
// them as those that a person writes.

#include <string>
#include <vector>

#include "gateway/config/config.h"
#include "gateway/join/invitation.h"
#include "gateway/join/join_messages.h"
#include "host/network.h"
#include "inet/addresses.h"

namespace braid {

/// Paths of a gateway's files.
struct GatewayFiles {
  std::string folder = "/etc/braid";
  std::string name;
  std::string yaml() const { return folder + "/" + name + ".yaml"; }
  std::string key() const { return folder + "/" + name + ".key"; }
  std::string certificate() const { return folder + "/" + name + ".crt"; }
};

/// An uplink as it is to be written.
struct PlannedUplink {
  std::string interface;
  std::string name{};    ///< empty: the interface's
  bool metered = false;  ///< paid for by volume: `use: metered`
  std::string cap{};     ///< `metered.cap`, in a month; empty: none
  bool operator==(const PlannedUplink&) const = default;
};

/// A gateway that a concentrator let join.
struct EdgePlan {
  GatewayFiles files;
  std::vector<PlannedUplink> uplinks;
  std::vector<Prefix> networks;  ///< behind this gateway
  std::vector<HostPort> concentrator;
  Pin pin{};  ///< the concentrator's
  JoinAnswer answer;
  std::vector<MarkMatch> bypassMarks{};  ///< `device.bypass-marks`
};
std::string edgeYaml(const EdgePlan& plan);

/// A gateway that others connect to.
struct ConcentratorPlan {
  GatewayFiles files;
  /// In the tunnel; their networks have room for edges.
  std::vector<InterfaceAddress> addresses;
  std::vector<Prefix> networks;  ///< behind this gateway
  uint16_t port = 4433;
  std::string device = "braid0";
};
std::string concentratorYaml(const ConcentratorPlan& plan);

/// What the user agreed to for the hosts behind a gateway.
struct RouterWish {
  bool forwarding = false;    ///< `forwarding: on`: the host forwards packets of other hosts
  bool betweenPeers = false;  ///< `between-peers: on`: edges reach each other through this gateway
  bool nat = false;  ///< `nat: on`: packets that leave the tunnel here get this host's address
};
/// The configuration, with the sections for `wish` appended.
std::string withRouter(const std::string& yaml, const RouterWish& wish);

/// What the configuration reader finds wrong, one mistake per line; empty: nothing.
std::string problemsOf(const ConfigResult& result);
/// Reads a configuration whose key and certificate need not be there. Throws std::runtime_error
/// with what problemsOf() says.
Config readConfig(const std::string& file);

}  // namespace braid
