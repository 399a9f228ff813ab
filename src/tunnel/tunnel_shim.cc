// The ack shim in the tunnel: it sees what passes between the device and the sessions (tunnel_inner.cc), and
// what it makes goes to either. For IP packets only: on a TAP device there is none.

#include "inet/inner_packet.h"
#include "tunnel/peer.h"
#include "tunnel/tunnel.h"

namespace braid {

void Tunnel::setUpShim() {
  if (!options_.ackShim || options_.mode != TunnelOptions::Mode::kTun) {
    shim_.reset();
  } else if (shim_) {
    shim_->setOptions(options_.shim);
  } else {
    const TunnelKnowledge* knowledge = this;
    shim_ = std::make_unique<AckShim>(options_.shim, pool_, knowledge, shimSeed_);
  }
}

void Tunnel::onShimTimer(Time now) {
  if (!shim_ || shim_->nextDeadline() > now) return;
  shim_->onTimer(now);
  while (Packet packet = shim_->pollToHost()) delivered_.pushBack(std::move(packet));
  while (Packet packet = shim_->pollToPeer()) resend(std::move(packet), now);
}

// A local host's segment again, which the shim need not see. It went the same way before: if that is closed
// now, the host will find out by itself.
void Tunnel::resend(Packet packet, Time now) {
  std::optional<InnerPacket> ip = parseInnerPacket(packet.view());
  std::optional<size_t> index = ip ? prefixes_.find(ip->dst) : std::nullopt;
  if (!index) return;
  Peer& peer = *peers_[*index];
  Session* session = peer.session();
  if (!session || !peer.isUp() || packet.size() > session->innerMtu()) return;
  queue(*session, std::move(packet), &*ip, 0, now);
}

void Tunnel::onPacketDropped(ByteView packet) {
  if (!shim_) return;
  if (std::optional<InnerPacket> ip = parseInnerPacket(packet)) shim_->onTunnelDropped(packet, *ip, now_);
}

// While there is no way to the peer, what is sent again would be lost as well.
bool Tunnel::isCarrying(const FlowKey& key) const {
  std::optional<size_t> index = prefixes_.find(key.destination());
  if (!index) return false;
  const Peer& peer = *peers_[*index];
  const Session* session = peer.session();
  return !session || !peer.isUp() || session->isCarrying(key);
}

}  // namespace braid
