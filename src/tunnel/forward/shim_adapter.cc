#include "tunnel/forward/shim_adapter.h"

#include <algorithm>

#include "inet/inner_packet.h"

namespace braid {

size_t LinkHeaders::setOf(const Address& local, const Address& remote) const {
  FlowKey pair;
  pair.family = local.family;
  pair.src = local.bytes;
  pair.dst = remote.bytes;
  return hash_(pair) % kSets;
}

void LinkHeaders::note(const Address& local, const Address& remote, const Header& header) {
  Set& set = sets_[setOf(local, remote)];
  auto found = std::find_if(set.begin(), set.end() - 1,
                            [&](const Entry& e) { return e.local == local && e.remote == remote; });
  std::rotate(set.begin(), found, found + 1);
  set.front() = {local, remote, header};
}

std::optional<LinkHeaders::Header> LinkHeaders::toRemote(const Address& local,
                                                         const Address& remote) const {
  for (const Entry& e : sets_[setOf(local, remote)]) {
    if (e.local == local && e.remote == remote) return e.header;
  }
  return std::nullopt;
}

std::optional<LinkHeaders::Header> LinkHeaders::toLocal(const Address& local,
                                                        const Address& remote) const {
  std::optional<Header> header = toRemote(local, remote);
  constexpr size_t kBytes = std::tuple_size_v<MacAddress>;
  if (header) std::swap_ranges(header->begin(), header->begin() + kBytes, header->begin() + kBytes);
  return header;
}

void AckShimAdapter::setUp(const TunnelOptions& options) {
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

void AckShimAdapter::noteLink(ByteView frame, const InnerPacket& ip) {
  LinkHeaders::Header header;
  std::copy_n(frame.begin(), header.size(), header.begin());
  links_->note(ip.src, ip.dst, header);
}

void AckShimAdapter::onDropped(ByteView packet, Time now) {
  size_t before = links_ ? LinkHeaders::kSize : 0;
  if (!shim_ || packet.size() < before) return;
  ByteView bytes = packet.subspan(before);  // frames with VLAN tags do not parse as IP here
  if (std::optional<InnerPacket> ip = parseInnerPacket(bytes))
    shim_->onTunnelDropped(bytes, *ip, now);
}

bool AckShimAdapter::onTimer(Time now) {
  if (nextDeadline() > now) return false;
  shim_->onTimer(now);
  return true;
}

// A packet whose Ethernet header is no longer known is dropped.
template <typename Poll, typename Header>
Packet AckShimAdapter::pollWith(Poll&& poll, Header&& header) {
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

Packet AckShimAdapter::pollToHost() {
  return pollWith([this] { return shim_->pollToHost(); },
                  [this](const InnerPacket& ip) { return links_->toLocal(ip.dst, ip.src); });
}

Packet AckShimAdapter::pollToPeer() {
  return pollWith([this] { return shim_->pollToPeer(); },
                  [this](const InnerPacket& ip) { return links_->toRemote(ip.src, ip.dst); });
}

std::optional<MacAddress> AckShimAdapter::nextHopOf(const FlowKey& fromHost) const {
  std::optional<LinkHeaders::Header> header =
      links_ ? links_->toRemote(fromHost.source(), fromHost.destination()) : std::nullopt;
  if (!header) return std::nullopt;
  MacAddress mac;
  std::copy_n(header->begin(), mac.size(), mac.begin());
  return mac;
}

ShimStatus AckShimAdapter::status() const {
  if (!shim_) return {};
  return {true, shim_->counters(), shim_->flows(), shim_->cachedPackets()};
}

}  // namespace braid
