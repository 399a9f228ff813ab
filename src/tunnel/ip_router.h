#pragma once

#include <vector>

#include "inet/prefix.h"

namespace braid {

class Peer;

/// Which peer an inner IP address lies behind, by the prefixes of the configuration.
class IpRouter {
 public:
  void clear();
  /// `peer` must live until clear(). A prefix that an earlier peer has stays with that one.
  void add(Peer& peer);
  /// The peer with the longest prefix that contains the address; nullptr: none has one.
  Peer* peerFor(const Address& address) const;

 private:
  std::vector<Peer*> peers_;
  PrefixTable prefixes_;  ///< to positions in peers_
};

}  // namespace braid
