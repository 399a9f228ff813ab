#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

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
  /// The peer with the longest prefix that contains the address; nullptr: none has one, or it is on this side.
  Peer* peerFor(const Address& address) const;
  bool isLocal(const Address& address) const { return prefixes_.find(address) == kLocal; }

 private:
  static constexpr size_t kLocal = SIZE_MAX;
  std::vector<Peer*> peers_;
  PrefixTable prefixes_;  ///< to positions in peers_, or kLocal
};

}  // namespace braid
