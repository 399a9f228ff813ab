#include "tunnel/shim_joint.h"

#include <algorithm>

#include "inet/inner_packet.h"

namespace braid {

void ShimJoint::setUp(const TunnelOptions& options) {
  if (!options.ackShim) {
    shim_.reset();
    links_.reset();
  } else if (shim_) {
    shim_->setOptions(options.shim);
  } else {
    shim_ = std::make_unique<AckShim>(options.shim, pool_, &knowledge_, seeds_);
    if (options.mode == TunnelOptions::Mode::kTap) links_.emplace(hash_);
  }
}

void ShimJoint::noteLink(ByteView frame, const InnerPacket& ip) {
  LinkHeaders::Header header;
  std::copy_n(frame.begin(), header.size(), header.begin());
  links_->note(ip.src, ip.dst, header);
}

void ShimJoint::onDropped(ByteView packet, Time now) {
  size_t before = links_ ? LinkHeaders::kSize : 0;
  if (!shim_ || packet.size() < before) return;
  ByteView bytes = packet.subspan(before);  // no IP behind a tag
  if (std::optional<InnerPacket> ip = parseInnerPacket(bytes)) shim_->onTunnelDropped(bytes, *ip, now);
}

bool ShimJoint::onTimer(Time now) {
  if (nextDeadline() > now) return false;
  shim_->onTimer(now);
  return true;
}

// A packet whose header is not known any more is of no use.
template <typename Poll, typename Header>
Packet ShimJoint::pollWith(Poll&& poll, Header&& header) {
  while (shim_) {
    Packet packet = poll();
    if (!packet || !links_) return packet;
    std::optional<InnerPacket> ip = parseInnerPacket(packet.view());
    std::optional<LinkHeaders::Header> known = ip ? header(*ip) : std::nullopt;
    if (!known) continue;
    std::copy(known->begin(), known->end(), packet.prepend(known->size()));
    return packet;
  }
  return {};
}

Packet ShimJoint::pollToHost() {
  return pollWith([this] { return shim_->pollToHost(); },
                  [this](const InnerPacket& ip) { return links_->toLocal(ip.dst, ip.src); });
}

Packet ShimJoint::pollToPeer() {
  return pollWith([this] { return shim_->pollToPeer(); },
                  [this](const InnerPacket& ip) { return links_->toRemote(ip.src, ip.dst); });
}

std::optional<MacAddress> ShimJoint::nextHopOf(const FlowKey& fromHost) const {
  std::optional<LinkHeaders::Header> header =
      links_ ? links_->toRemote(fromHost.source(), fromHost.destination()) : std::nullopt;
  if (!header) return std::nullopt;
  MacAddress mac;
  std::copy_n(header->begin(), mac.size(), mac.begin());
  return mac;
}

ShimStatus ShimJoint::status() const {
  if (!shim_) return {};
  return {true, shim_->counters(), shim_->flows(), shim_->cachedPackets()};
}

}  // namespace braid
