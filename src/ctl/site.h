#pragma once

// What braidctl finds out about the machine that it is to make a gateway.

#include <string>
#include <vector>

#include "gateway/join/join_messages.h"
#include "host/network_table.h"
#include "inet/prefix.h"

namespace braid {

/// Interfaces with a default route that are up, the one that the kernel prefers first. Not `device`. A tunnel
/// only where there is nothing else: it runs over another uplink.
std::vector<std::string> findUplinks(const NetworkTable& table, const std::string& device);
/// What is wrong with the networks of a concentrator's answer at this host, with a remedy; empty: nothing. One that an
/// interface here is in, or a part of such a one, cannot be at the other end as well: its hosts would not be reached here
/// any more, the uplink's own router among them.
std::string clashText(const JoinAnswer& answer, const NetworkTable& table, const std::string& device);
/// Whether a device that is made now can have IPv6: this file is there, and says 0. It lacks with a kernel without IPv6.
bool hasIpv6(const std::string& switchedOff = "/proc/sys/net/ipv6/conf/default/disable_ipv6");
/// The concentrator's answer without its addresses and networks of IPv6, for a machine that has none.
JoinAnswer withoutIpv6(JoinAnswer answer);
/// The networks of private addresses on the other interfaces that are up and may be LANs (OutwardLinks). Not
/// those of `device` and of uplinks.
std::vector<Prefix> findLans(const NetworkTable& table, const std::vector<std::string>& uplinks,
                             const std::string& device);

}  // namespace braid
