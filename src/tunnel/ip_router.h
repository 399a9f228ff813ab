#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "inet/flow_key.h"
#include "inet/prefix.h"

namespace braid {

class Peer;

/// Which peer an inner IP address lies behind, by the prefixes of the configuration; and which ones lie on this side,
/// whatever wider prefix a peer has.
class IpRouter {
 public:
  void clear();
  /// A network on this side. A prefix that was added before stays with its owner.
  void addLocal(const Prefix& network) { prefixes_.insert(network, kLocal); }
  /// `peer` must live until clear(). A prefix that was added before stays with its owner.
  void add(Peer& peer);
  /// The peer with the longest prefix that contains the address; nullptr: none has one, or it is on this side. Of several
  /// peers of a group with that prefix the one in use.
  Peer* peerFor(const Address& address) const;
  /// The same for the destination of a flow. A TCP connection stays with the peer of the group that has it, while that
  /// one answers.
  Peer* peerFor(const FlowKey& flow) const;
  /// Whether the peer is one of those with the longest prefix that contains the address.
  bool owns(const Peer& peer, const Address& address) const;
  bool isLocal(const Address& address) const { return prefixes_.find(address) == kLocal; }

 private:
  static constexpr size_t kLocal = SIZE_MAX;
  using Owners = std::vector<Peer*>;  ///< several ones are of one group, the preferred one first
  const Owners* ownersOf(const Address& address) const;

  std::vector<Owners> owners_;
  PrefixTable prefixes_;             ///< to positions in owners_, or kLocal
  std::map<Prefix, size_t> shared_;  ///< of peers of groups, to the same positions
};

}  // namespace braid
