#pragma once

// What braidctl finds out about the machine that is to become a gateway.

#include <string>
#include <vector>

#include "gateway/join/join_messages.h"
#include "host/network_table.h"
#include "inet/addresses.h"

namespace braid {

/// Interfaces that are up and have a default route, in the kernel's order of preference, without
/// `device`. Tunnels are included only where there is nothing else, because they run over another
/// uplink.
std::vector<std::string> findUplinks(const NetworkTable& table, const std::string& device);
/// What is wrong on this host with the networks of a concentrator's answer, with a remedy; empty:
/// nothing. The other end cannot have a network that an interface here is in, or a part of one:
/// hosts of that network would become unreachable here, the uplink's own router included.
std::string clashText(const JoinAnswer& answer, const NetworkTable& table,
                      const std::string& device);
/// Whether a new device can have IPv6: the file exists and holds 0. With a kernel without IPv6 the
/// file does not exist.
bool hasIpv6(const std::string& switchedOff = "/proc/sys/net/ipv6/conf/default/disable_ipv6");
/// The concentrator's answer minus its IPv6 addresses and networks, when this machine lacks IPv6.
JoinAnswer withoutIpv6(JoinAnswer answer);
/// The networks of private addresses on the other interfaces that are up and may lead to LANs
/// (OutwardLinks), without `device` and uplinks.
std::vector<Prefix> findLans(const NetworkTable& table, const std::vector<std::string>& uplinks,
                             const std::string& device);

}  // namespace braid
