#include "tunnel/frame_switch.h"

namespace braid {

void FrameSwitch::learn(const MacAddress& mac, Peer& peer, Time now) {
  if (mac[0] & 1) return;
  auto found = macs_.find(mac);
  if (found != macs_.end()) {
    found->second = {&peer, now};
    return;
  }
  if (macs_.size() >= kMaxMacs && now >= nextSweep_) {
    nextSweep_ = now + kMacSweep;
    std::erase_if(macs_, [&](const auto& entry) { return now - entry.second.seen >= kMacAge; });
  }
  if (macs_.size() < kMaxMacs) macs_[mac] = {&peer, now};
}

void FrameSwitch::forgetPeers(const std::function<bool(const Peer&)>& isGone) {
  std::erase_if(macs_, [&](const auto& entry) { return isGone(*entry.second.peer); });
}

Peer* FrameSwitch::peerFor(const Frame& frame, Time now) const {
  auto known = frame.isMulticast ? macs_.end() : macs_.find(frame.dst);
  return known != macs_.end() && now - known->second.seen < kMacAge ? known->second.peer : nullptr;
}

}  // namespace braid
