#include "tunnel/shim_joint.h"

#include "inet/inner_packet.h"

namespace braid {

void ShimJoint::setUp(const TunnelOptions& options) {
  if (!options.ackShim || options.mode != TunnelOptions::Mode::kTun) {
    shim_.reset();
  } else if (shim_) {
    shim_->setOptions(options.shim);
  } else {
    shim_ = std::make_unique<AckShim>(options.shim, pool_, &knowledge_, seeds_);
  }
}

void ShimJoint::onDropped(ByteView packet, Time now) {
  if (!shim_) return;
  if (std::optional<InnerPacket> ip = parseInnerPacket(packet)) shim_->onTunnelDropped(packet, *ip, now);
}

bool ShimJoint::onTimer(Time now) {
  if (nextDeadline() > now) return false;
  shim_->onTimer(now);
  return true;
}

ShimStatus ShimJoint::status() const {
  if (!shim_) return {};
  return {true, shim_->counters(), shim_->flows(), shim_->cachedPackets()};
}

}  // namespace braid
