#pragma once

#include <set>
#include <string_view>

#include "host/network_table.h"

namespace braid {

/// Which of a host's interfaces lead out of the machine, by what the kernel says of them: their kinds, ports
/// and lower interfaces. Names say nothing: what one program calls "br-lan" another calls "podman0".
class OutwardLinks {
 public:
  /// `table` must outlive this.
  explicit OutwardLinks(const NetworkTable& table);

  /// Whether a LAN may be on this interface: hosts of Ethernet that are not on this machine. That is
  /// - a NIC, wired or wireless, with the ports of a switch (DSA);
  /// - a VLAN, or MACsec, on what leads out;
  /// - a bridge, bond, team, HSR or batman-adv with a port that leads out.
  ///
  /// A port is none, its bridge is; no tunnel is, and nothing that is for containers and virtual machines alone.
  ///
  /// A network namespace without any NIC is a container's, or a lab's. There a veth stands for one, as do
  /// macvlan, ipvlan and VLAN whose lower interface is in another namespace. As a port it does so if it leads
  /// to the same namespace as an interface with a default route: the containers of a container are in others.
  bool mayBeLan(const Link& link) const;

  /// Whether it runs over other interfaces, or nowhere: tunnels, "dummy" and the like.
  static bool isTunnel(const Link& link);

 private:
  bool leadsOut(const Link& link, int depth) const;
  bool portLeadsOut(const Link& port, int depth) const;
  bool standsForNic(const Link& link) const;

  const NetworkTable& table_;
  bool hasNic_ = false;
  std::set<int> upstream_;  ///< namespaces to which interfaces with a default route lead
};

}  // namespace braid
