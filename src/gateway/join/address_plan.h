#pragma once

// Which addresses a gateway that joins gets in the tunnel, and whether its networks can be had.

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "gateway/config/config.h"
#include "gateway/join/join_messages.h"
#include "host/host_network.h"
#include "host/network_table.h"

namespace braid {

/// The network of an interface's address.
Prefix networkOf(const InterfaceAddress& address);

/// For each of the device's addresses the lowest one of its network that nobody has, with the length of the network; the
/// first of each family counts. What the peer `name` has is free, for it is about to be replaced. Else what is wrong, with
/// a remedy: no network has room for both ends.
std::variant<std::vector<InterfaceAddress>, std::string> freeAddresses(const Config& config,
                                                                       std::string_view name);

/// What is wrong with these networks behind the peer `name`, with a remedy; empty: nothing. Each becomes a route of this
/// host. So only private ones may be had by an invitation, and none that holds an address of this side, of a network that
/// this host is in or has a route to (`reached`), of the networks that are `offered`, or of another peer.
std::string refuseNetworks(const std::vector<Prefix>& wanted, const std::vector<Prefix>& offered,
                           const std::vector<Prefix>& reached, const Config& config, std::string_view name);
/// The networks that this host's interfaces are in, but for that one.
std::vector<Prefix> connectedNetworks(const NetworkTable& table, const std::string& device);
/// These, and those that routes lead to by other devices than that one.
std::vector<Prefix> networksOfHost(const NetworkTable& table, HostNetwork& network,
                                   const std::string& device);

}  // namespace braid
