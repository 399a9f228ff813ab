#include "tunnel/frame_switch.h"

#include <algorithm>
#include <utility>

namespace braid {

namespace {

/// Lengths of IEEE 802.3 are below this, EtherTypes are not.
constexpr uint16_t kFirstEtherType = 0x600;
constexpr MacAddress kBridgeGroup{0x01, 0x80, 0xc2, 0, 0, 0};  ///< that bridges send STP to

/// 01:80:c2:00:00:00 to 0f: for the next bridge and not for those behind it (IEEE 802.1Q section 8.6.3).
bool isForNextBridge(const MacAddress& to) {
  return std::equal(to.begin(), to.end() - 1, kBridgeGroup.begin()) && to.back() < 0x10;
}

/// A second's worth is not sent at once.
Allowance floodsOf(const BridgeOptions& options) {
  uint32_t rate = std::max<uint32_t>(options.floodLimit, 1);
  return {std::max<uint32_t>(rate / 4, 1), Duration(1s) / rate};
}

}  // namespace

FrameSwitch::FrameSwitch(const BridgeOptions& options, std::function<bool(const Peer&)> isUp)
    : options_(options), isUp_(std::move(isUp)) {}

bool FrameSwitch::carries(const Frame& frame) const {
  if (isForNextBridge(frame.dst))
    return options_.spanningTree && frame.dst == kBridgeGroup && frame.etherType < kFirstEtherType;
  const auto& types = options_.etherTypes;
  return options_.allTypes || std::find(types.begin(), types.end(), frame.etherType) != types.end();
}

bool FrameSwitch::admit(const MacAddress& mac, Peer* from, Time now) {
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

bool FrameSwitch::mayMove(const Entry& entry, const Port& to, Time now) const {
  if (!to.peer || entry.before == &to || isOld(entry, now)) return true;
  const Peer* owner = entry.port->peer;
  return owner && !isUp_(*owner);
}

void FrameSwitch::forgetPeers(const std::function<bool(const Peer&)>& isGone) {
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

FrameSwitch::Way FrameSwitch::wayTo(const Frame& frame, Time now) const {
  auto known = frame.isMulticast ? macs_.end() : macs_.find(frame.dst);
  if (known == macs_.end() || isOld(known->second, now)) return {};
  return {true, known->second.port->peer};
}

Peer* FrameSwitch::peerBehind(const MacAddress& mac) const {
  auto known = macs_.find(mac);
  return known == macs_.end() ? nullptr : known->second.port->peer;
}

bool FrameSwitch::mayFlood(Peer* from, Time now) {
  return portOf(from).floods.take(floodsOf(options_), now);
}

FrameSwitch::Port& FrameSwitch::portOf(Peer* peer) {
  Port& port = ports_[peer];
  port.peer = peer;
  return port;
}

// Whether the port may have one address more. In a full table who has less than his share takes the place of the
// oldest address of who has most; the others must wait until one of their own is too old.
bool FrameSwitch::makeRoom(const Port& port, Time now) {
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

void FrameSwitch::put(Entry& entry, Port& port, Time now) {
  entry.port = &port;
  entry.seen = now;
  port.entries.pushBack(entry);
  ++port.count;
}

void FrameSwitch::take(Entry& entry) {
  entry.port->entries.erase(entry);
  --entry.port->count;
}

void FrameSwitch::forget(Entry& entry) {
  take(entry);
  macs_.erase(macs_.find(entry.mac));
}

}  // namespace braid
