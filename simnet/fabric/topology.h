#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "simnet/fabric/port.h"

namespace braid::sim {

/// Hosts, switches and the cables between them. Nodes are numbered in the order in which they were added; hosts have
/// numbers of their own, too.
class Topology {
 public:
  /// One direction of a cable.
  struct Cable {
    size_t from = 0, to = 0;  ///< nodes
    PortOptions options;
    std::string layer;  ///< for counters by layer: "access", "aggregation", "core"
  };

  /// A switch; returns its node.
  size_t addSwitch();
  /// A host below this switch; returns its number among the hosts. `up`: its own port; `down`: that of the switch.
  size_t addHost(size_t toSwitch, const PortOptions& up, const PortOptions& down);
  /// A cable with the same port at both ends.
  void connect(size_t a, size_t b, const PortOptions& both, const std::string& layer);

  size_t nodes() const { return isHost_.size(); }
  const std::vector<Cable>& cables() const { return cables_; }
  /// The node of each host.
  const std::vector<size_t>& hosts() const { return hosts_; }
  /// Where that host is attached.
  size_t switchOf(size_t host) const { return attached_[host]; }

  /// For each node and each switch: the cables (indices) that lie on a shortest way there; a switch's way to itself is
  /// empty.
  std::vector<std::vector<std::vector<uint32_t>>> routes() const;

 private:
  std::vector<bool> isHost_;  // of each node: whether it is a host
  std::vector<size_t> hosts_, attached_;
  std::vector<Cable> cables_;
};

/// Every leaf is linked to every spine, with so many hosts below each leaf (T-RACKs section V-B: 9 x 4).
struct LeafSpine {
  size_t leaves = 9, spines = 4, hostsPerLeaf = 10;
  PortOptions host;    ///< a host's own port
  PortOptions access;  ///< a leaf's port towards a host
  PortOptions fabric;  ///< between leaves and spines
  Topology build() const;
};

/// Pods of aggregation and edge switches below a core (Al-Fares et al. 2008). A fat tree of k has k pods of k/2
/// aggregation and k/2 edge switches, k/2 hosts an edge switch and (k/2)^2 core switches; AMP's is that of k = 8.
/// FUSO's (fig. 10) has four pods of 2 + 2, eight hosts an edge switch, and four core switches.
struct Pods {
  size_t pods = 8, aggregation = 4, edge = 4, hostsPerEdge = 4, core = 16;
  PortOptions host, access, fabric;  ///< see LeafSpine
  /// That of an even k, at least 2.
  static Pods fatTree(size_t k);
  /// FUSO fig. 10.
  static Pods fuso();
  /// Aggregation switch i of each pod is linked to core switches [i * core / aggregation, (i + 1) * core / aggregation).
  Topology build() const;
};

}  // namespace braid::sim
