#include "tunnel/forward/router.h"

#include <algorithm>
#include <utility>

#include "inet/ip.h"
#include "tunnel/peer/peer.h"

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
    if (peer->inUse) return peer;
  return owners->front();
}

Peer* IpRouter::peerFor(const FlowKey& flow) const {
  const Owners* owners = ownersOf(flow.destination());
  if (!owners) return nullptr;
  Peer* used = owners->front();
  for (Peer* peer : *owners) {
    if (peer->inUse) {
      used = peer;
    } else if (flow.protocol == ip::kTcp && peer->isUsable() && peer->session()->flow(flow)) {
      return peer;
    }
  }
  return used;
}

bool IpRouter::owns(const Peer& peer, const Address& address) const {
  const Owners* owners = ownersOf(address);
  return owners && std::find(owners->begin(), owners->end(), &peer) != owners->end();
}

namespace {

/// An IEEE 802.3 length is below this value, an EtherType is not.
constexpr uint16_t kFirstEtherType = 0x600;
constexpr MacAddress kBridgeGroup{0x01, 0x80, 0xc2, 0, 0, 0};  ///< to which bridges send STP frames

/// 01:80:c2:00:00:00 to :0f are for the next bridge, not for bridges behind it (IEEE 802.1Q section
/// 8.6.3).
bool isForNextBridge(const MacAddress& to) {
  return std::equal(to.begin(), to.end() - 1, kBridgeGroup.begin()) && to.back() < 0x10;
}

/// At most a quarter of a second's frames may be sent at once.
RateLimit floodsOf(const BridgeOptions& options) {
  uint32_t rate = std::max<uint32_t>(options.floodLimit, 1);
  return {std::max<uint32_t>(rate / 4, 1), Duration(1s) / rate};
}

}  // namespace

LearningBridge::LearningBridge(const BridgeOptions& options, std::function<bool(const Peer&)> isUp)
    : options_(options), isUp_(std::move(isUp)) {}

bool LearningBridge::carries(const Frame& frame) const {
  if (isForNextBridge(frame.dst))
    return options_.spanningTree && frame.dst == kBridgeGroup && frame.etherType < kFirstEtherType;
  const auto& types = options_.etherTypes;
  return options_.allTypes || std::find(types.begin(), types.end(), frame.etherType) != types.end();
}

bool LearningBridge::admit(const MacAddress& mac, Peer* from, Time now) {
  Port& port = portOf(from);
  auto found = macs_.find(mac);
  if (found == macs_.end()) {
    if (!makeRoom(port, now)) return true;
    Entry& fresh = macs_[mac];
    fresh.mac = mac;
    put(fresh, port, now);
    return true;
  }
  Entry& entry = found->second;
  if (entry.port != &port) {
    if (!mayMove(entry, port, now)) return false;
    bool back = entry.before == &port;
    entry.before = back || !from ? nullptr : entry.port;
  }
  take(entry);
  put(entry, port, now);
  return true;
}

bool LearningBridge::mayMove(const Entry& entry, const Port& to, Time now) const {
  if (!to.peer || entry.before == &to || isOld(entry, now)) return true;
  const Peer* owner = entry.port->peer;
  return owner && !isUp_(*owner);
}

void LearningBridge::forgetPeers(const std::function<bool(const Peer&)>& isGone) {
  for (auto at = ports_.begin(); at != ports_.end();) {
    auto here = at++;
    Port& port = here->second;
    if (!port.peer || !isGone(*port.peer)) continue;
    for (auto& [mac, entry] : macs_) {
      if (entry.before == &port) entry.before = nullptr;
    }
    while (Entry* entry = port.entries.front()) forget(*entry);
    ports_.erase(here);
  }
}

LearningBridge::Way LearningBridge::wayTo(const Frame& frame, Time now) const {
  auto known = frame.isMulticast ? macs_.end() : macs_.find(frame.dst);
  if (known == macs_.end() || isOld(known->second, now)) return {};
  return {true, known->second.port->peer};
}

Peer* LearningBridge::peerBehind(const MacAddress& mac) const {
  auto known = macs_.find(mac);
  return known == macs_.end() ? nullptr : known->second.port->peer;
}

bool LearningBridge::mayFlood(Peer* from, Time now) {
  return portOf(from).floods.take(floodsOf(options_), now);
}

LearningBridge::Port& LearningBridge::portOf(Peer* peer) {
  Port& port = ports_[peer];
  port.peer = peer;
  return port;
}

// Whether the port may have one more address. In a full table a port with less than its share
// evicts the oldest address of the port with most. Any other port must wait until its own oldest
// address is too old.
bool LearningBridge::makeRoom(const Port& port, Time now) {
  if (macs_.size() < kMaxMacs) return true;
  if (port.count * ports_.size() < kMaxMacs) {
    auto fewer = [](const auto& a, const auto& b) { return a.second.count < b.second.count; };
    forget(*std::max_element(ports_.begin(), ports_.end(), fewer)->second.entries.front());
    return true;
  }
  Entry* oldest = port.entries.front();
  if (!isOld(*oldest, now)) return false;
  forget(*oldest);
  return true;
}

void LearningBridge::put(Entry& entry, Port& port, Time now) {
  entry.port = &port;
  entry.seen = now;
  port.entries.pushBack(entry);
  ++port.count;
}

void LearningBridge::take(Entry& entry) {
  entry.port->entries.erase(entry);
  --entry.port->count;
}

void LearningBridge::forget(Entry& entry) {
  take(entry);
  macs_.erase(macs_.find(entry.mac));
}

}  // namespace braid
