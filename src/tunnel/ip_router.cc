#include "tunnel/ip_router.h"

#include "tunnel/peer.h"

namespace braid {

void IpRouter::clear() {
  prefixes_.clear();
  peers_.clear();
}

void IpRouter::add(Peer& peer) {
  for (const Prefix& prefix : peer.options().prefixes) prefixes_.insert(prefix, peers_.size());
  peers_.push_back(&peer);
}

Peer* IpRouter::peerFor(const Address& address) const {
  std::optional<size_t> found = prefixes_.find(address);
  return found && *found != kLocal ? peers_[*found] : nullptr;
}

}  // namespace braid
