#pragma once

// Chooses the addresses that a joining gateway gets in the tunnel, and checks whether it can have
// the networks that it asks for.

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gateway/config/config.h"
#include "gateway/join/join_messages.h"
#include "host/host.h"
#include "host/network.h"
#include "inet/addresses.h"

namespace braid {

/// The network that an interface's address is in.
Prefix networkOf(const InterfaceAddress& address);

/// For each address family: the lowest free address in the network of the device's first address of
/// that family, with the network's prefix length. The addresses of the peer `name` count as free,
/// because this peer is about to be replaced. If no network has room for both ends, returns what is
/// wrong, with a remedy.
std::variant<std::vector<InterfaceAddress>, std::string> freeAddresses(const Config& config,
                                                                       std::string_view name);

/// Says what is wrong with these networks behind the peer `name`, with a remedy; empty: nothing.
/// Each network becomes a route of this host, so an invitation allows only private networks. None
/// may contain an address of this side, or overlap a network that this host is in or has a route to
/// (`reached`), a network that is `offered`, or a network of another peer.
std::string refuseNetworks(const std::vector<Prefix>& wanted, const std::vector<Prefix>& offered,
                           const std::vector<Prefix>& reached, const Config& config,
                           std::string_view name);
/// The networks that this host's interfaces are in, except those of `device`.
std::vector<Prefix> connectedNetworks(const NetworkTable& table, const std::string& device);
/// connectedNetworks(), and the networks that routes reach by other devices than `device`.
std::vector<Prefix> networksOfHost(const NetworkTable& table, HostNetwork& network,
                                   const std::string& device);

/// Where others may reach this gateway, as far as the host can tell.
struct PublicAddresses {
  std::vector<HostPort> addresses;  ///< at most kMaxInvitationAddresses
  std::string note;                 ///< what is doubtful or missing; empty: nothing
};

/// The endpoints that are listened on. 0.0.0.0 and [::] are replaced by the addresses of the
/// interfaces that have a default route; if any of these are public, only by the public ones.
PublicAddresses publicAddresses(const std::vector<Endpoint>& listen, const NetworkTable& table);

/// Whether an address is for private networks only (RFC 1918, RFC 6598, RFC 4193).
bool isPrivate(const Address& address);
/// Whether this holds for all addresses of the network.
bool isPrivate(const Prefix& network);

}  // namespace braid
