#pragma once

#include <set>
#include <string_view>

#include "host/network_table.h"

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

}  // namespace braid
