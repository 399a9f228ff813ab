#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "simnet/fabric/port.h"

namespace braid::sim {

/// Hosts, switches and the cables between them. Nodes are numbered in the order in which they were
/// added; hosts also have a numbering of their own.
class Topology {
 public:
  /// One direction of a cable.
  struct Cable {
    size_t from = 0, to = 0;  ///< nodes
    PortOptions options;
    std::string layer;  ///< groups the counters: "access", "aggregation" or "core"
  };

  /// Adds a switch and returns its node number.
  size_t addSwitch();
  /// Adds a host below this switch and returns its host number. `up`: the host's own port; `down`:
  /// the switch's port towards it.
  size_t addHost(size_t toSwitch, const PortOptions& up, const PortOptions& down);
  /// Joins two switches by a cable with the same port options at both ends.
  void connect(size_t a, size_t b, const PortOptions& both, const std::string& layer);

  size_t nodes() const { return isHost_.size(); }
  const std::vector<Cable>& cables() const { return cables_; }
  /// The node number of each host.
  const std::vector<size_t>& hosts() const { return hosts_; }
  /// The node number of the switch to which the host is attached.
  size_t switchOf(size_t host) const { return attached_[host]; }

  /// For each node and each destination switch: the cables (indices) out of the node that lie on a
  /// shortest path to it. Empty for a switch and itself.
  std::vector<std::vector<std::vector<uint32_t>>> routes() const;

 private:
  std::vector<bool> isHost_;  // of each node: whether it is a host
  std::vector<size_t> hosts_, attached_;
  std::vector<Cable> cables_;
};

/// A leaf-spine network: every leaf is linked to every spine, with `hostsPerLeaf` hosts below each
/// leaf (T-RACKs section V-B: 9 x 4).
struct LeafSpine {
  size_t leaves = 9, spines = 4, hostsPerLeaf = 10;
  PortOptions host;    ///< a host's own port
  PortOptions access;  ///< a leaf's port towards a host
  PortOptions fabric;  ///< between leaves and spines
  Topology build() const;
};

/// Pods of aggregation and edge switches below core switches (Al-Fares et al. 2008). A fat tree of
/// k has k pods with k/2 aggregation and k/2 edge switches each, k/2 hosts per edge switch and
/// (k/2)^2 core switches; AMP uses k = 8. FUSO (fig. 10) has four pods of two aggregation and two
/// edge switches, eight hosts per edge switch and four core switches.
struct Pods {
  size_t pods = 8, aggregation = 4, edge = 4, hostsPerEdge = 4, core = 16;
  PortOptions host, access, fabric;  ///< see LeafSpine
  /// The fat tree of an even k >= 2.
  static Pods fatTree(size_t k);
  /// The network of FUSO fig. 10.
  static Pods fuso();
  /// Builds the network. Aggregation switch i of each pod is linked to core switches [i * core /
  /// aggregation, (i + 1) * core / aggregation).
  Topology build() const;
};

}  // namespace braid::sim
