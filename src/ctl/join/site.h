#pragma once

// What braidctl finds out about the machine that is to become a gateway.

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/join/join_messages.h"
#include "host/network.h"
#include "inet/addresses.h"

namespace braid {

/// Finds the interfaces that lead out of this machine, by what the kernel says of them: their
/// kinds, ports and lower interfaces. Names are not used: one program's "br-lan" is another
/// program's "podman0".
class OutwardLinks {
 public:
  /// `table` must outlive this.
  explicit OutwardLinks(const NetworkTable& table);

  /// Whether the interface may lead to a LAN, that is, to Ethernet hosts that are not on this
  /// machine. These kinds of interfaces may:
  /// - a NIC, wired or wireless, including the ports of a switch (DSA);
  /// - a VLAN or MACsec interface on an interface that leads out;
  /// - a bridge, bond, team, HSR or batman-adv interface with a port that leads out.
  ///
  /// Others may not: a port (its bridge counts instead), a tunnel, and an interface that serves
  /// only containers or virtual machines.
  ///
  /// A network namespace without a NIC belongs to a container or a lab. There, a veth counts as a
  /// NIC, as do macvlan, ipvlan and VLAN interfaces whose lower interface is in another namespace.
  /// A veth that is a port counts only if it leads to the same namespace as an interface with a
  /// default route, because the containers inside a container are in other namespaces.
  bool mayBeLan(const Link& link) const;

  /// Whether the interface runs over other interfaces, or leads nowhere: tunnels, "dummy" and the
  /// like.
  static bool isTunnel(const Link& link);

 private:
  bool leadsOut(const Link& link, int depth) const;
  bool portLeadsOut(const Link& port, int depth) const;
  bool standsForNic(const Link& link) const;

  const NetworkTable& table_;
  bool hasNic_ = false;
  std::set<int> upstream_;  ///< namespaces that interfaces with a default route lead to
};

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
/// An interface that may lead to a LAN, and has no carrier: nothing is plugged in now.
struct DarkLan {
  std::string interface;
  std::vector<Prefix> networks;  ///< of private addresses; empty: it has none without carrier
  bool operator==(const DarkLan&) const = default;
};
/// The LANs that findLans() leaves out because they have no carrier. An interface that nobody has
/// switched on or given an address is left out here, too.
std::vector<DarkLan> findDarkLans(const NetworkTable& table,
                                  const std::vector<std::string>& uplinks,
                                  const std::string& device);
/// The networks of private addresses on the other interfaces that are up and may lead to LANs
/// (OutwardLinks), without `device` and uplinks.
std::vector<Prefix> findLans(const NetworkTable& table, const std::vector<std::string>& uplinks,
                             const std::string& device);

}  // namespace braid
