#pragma once

// The configurations that braidctl writes: commented, and read by the same reader as those of a person.

#include <string>
#include <vector>

#include "gateway/join/invitation.h"
#include "gateway/join/join_messages.h"
#include "host/host_network.h"
#include "inet/prefix.h"

namespace braid {

/// Where a gateway's files are.
struct GatewayFiles {
  std::string folder = "/etc/braid";
  std::string name;
  std::string yaml() const { return folder + "/" + name + ".yaml"; }
  std::string key() const { return folder + "/" + name + ".key"; }
  std::string certificate() const { return folder + "/" + name + ".crt"; }
};

/// A gateway that was let in.
struct EdgePlan {
  GatewayFiles files;
  std::vector<std::string> uplinks;
  std::vector<Prefix> networks;  ///< behind this gateway
  std::vector<HostPort> concentrator;
  Pin pin{};  ///< the concentrator's
  JoinAnswer answer;
};
std::string edgeYaml(const EdgePlan& plan);

/// A gateway that others come to.
struct ConcentratorPlan {
  GatewayFiles files;
  std::vector<InterfaceAddress> addresses;  ///< of the tunnel, with room for edges
  std::vector<Prefix> networks;             ///< behind this gateway
  uint16_t port = 4433;
  std::string device = "braid0";
};
std::string concentratorYaml(const ConcentratorPlan& plan);

/// What the user agrees to have done for the hosts behind a gateway.
struct RouterWish {
  bool forwarding = false;  ///< `forwarding: on`: the host passes on packets of others
  bool nat = false;         ///< `nat: on`: what leaves the tunnel here has this host's address
};
/// The configuration with what the user agreed to behind it.
std::string withRouter(const std::string& yaml, const RouterWish& wish);

/// What the reader says of it, but for key and certificate, which need not be there yet; empty: nothing.
std::string problemsOf(const std::string& yaml, const std::string& path);

}  // namespace braid
