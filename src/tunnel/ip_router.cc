#include "tunnel/ip_router.h"

#include <algorithm>

#include "inet/protocol.h"
#include "tunnel/peer.h"

namespace braid {

void IpRouter::clear() {
  prefixes_.clear();
  owners_.clear();
  shared_.clear();
}

void IpRouter::add(Peer& peer) {
  const PeerOptions& options = peer.options();
  if (options.group.empty()) {
    for (const Prefix& prefix : options.prefixes) prefixes_.insert(prefix, owners_.size());
    return owners_.push_back({&peer});
  }
  for (const Prefix& prefix : options.prefixes) {
    if (auto known = shared_.find(prefix); known != shared_.end()) {
      owners_[known->second].push_back(&peer);
    } else if (prefixes_.insert(prefix, owners_.size())) {
      shared_.emplace(prefix, owners_.size());
      owners_.push_back({&peer});
    }
  }
}

const IpRouter::Owners* IpRouter::ownersOf(const Address& address) const {
  std::optional<size_t> found = prefixes_.find(address);
  return found && *found != kLocal ? &owners_[*found] : nullptr;
}

Peer* IpRouter::peerFor(const Address& address) const {
  const Owners* owners = ownersOf(address);
  if (!owners) return nullptr;
  for (Peer* peer : *owners)
    if (peer->place.inUse) return peer;
  return owners->front();
}

Peer* IpRouter::peerFor(const FlowKey& flow) const {
  const Owners* owners = ownersOf(flow.destination());
  if (!owners) return nullptr;
  Peer* used = owners->front();
  for (Peer* peer : *owners) {
    if (peer->place.inUse) {
      used = peer;
    } else if (flow.protocol == ip::kTcp && isUsable(*peer) && peer->session()->flow(flow)) {
      return peer;
    }
  }
  return used;
}

bool IpRouter::owns(const Peer& peer, const Address& address) const {
  const Owners* owners = ownersOf(address);
  return owners && std::find(owners->begin(), owners->end(), &peer) != owners->end();
}

}  // namespace braid
