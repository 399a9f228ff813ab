#include "simnet/fabric/hosts.h"

#include <optional>
#include <string>

#include "inet/ip.h"
#include "simnet/fabric/host_addresses.h"

namespace braid::sim {

namespace {
constexpr HostAddresses kAddressesOfHosts{10, 1};
}  // namespace

NetworkHosts::NetworkHosts(Timeline& timeline, SwitchedNetwork& network) : network_(network) {
  for (size_t h = 0; h < network.hosts(); ++h) {
    Address own = kAddressesOfHosts.at(h);
    hosts_.push_back(
        std::make_unique<ShimHost>(timeline, "host" + std::to_string(h), own,
                                   [this, h](Bytes packet) { send(h, std::move(packet)); }));
    network.attach(h, Lane::kHost, [host = hosts_.back().get()](Parcel&& parcel) {
      if (parcel.wire.ecn == Ecn::kCe) braid::markCe(ByteSpan(parcel.wire.bytes));
      host->arrive(parcel.wire.bytes);
    });
  }
}

void NetworkHosts::send(size_t host, Bytes packet) {
  std::optional<InnerPacket> ip = parseInnerPacket(packet);
  if (!ip) return;
  size_t to = kAddressesOfHosts.hostOf(ip->dst);
  if (to >= size() || to == host) return;
  Parcel parcel;
  parcel.lane = Lane::kHost;
  parcel.wire.src = {ip->src, ip->sport};
  parcel.wire.dst = {ip->dst, ip->dport};
  parcel.wire.ecn = ip->ecn;
  parcel.host = static_cast<uint32_t>(to);
  parcel.bytes = static_cast<uint32_t>(packet.size());
  parcel.flow = flowHash(parcel.wire.src, parcel.wire.dst);
  parcel.wire.bytes = std::move(packet);
  network_.send(host, std::move(parcel));
}

ShimCounters NetworkHosts::shims() const {
  ShimCounters sum;
  for (const auto& host : hosts_) {
    if (host->shim()) addCounters(sum, host->shim()->counters());
  }
  return sum;
}

}  // namespace braid::sim
