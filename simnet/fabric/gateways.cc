#include "simnet/fabric/gateways.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "simnet/fabric/host_addresses.h"

namespace braid::sim {

namespace {
constexpr uint16_t kFirstPort = 40000;
constexpr HostAddresses kAddresses{172, 16};
}  // namespace

FabricGateways::FabricGateways(World& world, SwitchedNetwork& network, size_t sockets)
    : world_(world), network_(network), sockets_(sockets) {
  world.attach(*this);
}

Endpoint FabricGateways::endpointOf(size_t host, SocketId socket) {
  bool responder = socket == kResponder;
  return {kAddresses.at(host), responder ? kPort : static_cast<uint16_t>(kFirstPort + socket)};
}

Node& FabricGateways::add(const TunnelOptions& options) {
  size_t host = gateways_.size();
  Node& node = world_.addNode("host" + std::to_string(host), options);
  for (size_t i = 0; i < sockets_; ++i) {
    UplinkSpec uplink;
    uplink.name = "path" + std::to_string(i);
    uplink.sockets = {{static_cast<SocketId>(kFirst + i), Address::Family::kV4}};
    node.uplinks.push_back(uplink);
  }
  gateways_.push_back(&node);
  hosts_.resize(node.number() + 1);
  hosts_[node.number()] = host;
  network_.attach(host, Lane::kGateway,
                  [this, host](Parcel&& parcel) { arrive(host, std::move(parcel)); });
  return node;
}

void FabricGateways::pair(size_t initiator, size_t responder) {
  Node& near = at(initiator);
  world_.pair(near, at(responder));
  near.peers.back().endpoints.push_back(endpointOf(responder, kResponder));
}

void FabricGateways::start() {
  constexpr Duration kPatience = 30s;
  constexpr Duration kStep = 10ms;
  world_.start();
  Time end = world_.now() + kPatience;
  do {
    if (world_.now() >= end)
      throw std::runtime_error("the tunnels do not come up\n" + world_.report());
    world_.run(kStep);
    if (!world_.failure().empty()) throw std::runtime_error(world_.failure());
  } while (!ready());
}

void FabricGateways::start(std::vector<std::pair<size_t, size_t>> pairs) {
  for (auto& [a, b] : pairs) {
    if (a > b) std::swap(a, b);
  }
  std::ranges::sort(pairs);
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  for (auto [a, b] : pairs) pair(a, b);
  start();
}

bool FabricGateways::ready() const {
  for (const Node* node : gateways_) {
    for (const PeerStatus& peer : node->status().peers) {
      size_t active = 0;
      for (const SubflowStatus& s : peer.subflows) active += s.state == "active";
      if (!peer.up || active < sockets_) return false;
    }
  }
  return true;
}

Endpoint FabricGateways::source(const Node& from, SocketId socket) const {
  return endpointOf(hosts_[from.number()], socket);
}

void FabricGateways::carry(WireDatagram&& wire, size_t bytes) {
  size_t from = kAddresses.hostOf(wire.src.address), to = kAddresses.hostOf(wire.dst.address);
  if (to >= gateways_.size()) return;
  Parcel parcel;
  parcel.flow = flowHash(wire.src, wire.dst);
  parcel.wire = std::move(wire);
  parcel.host = static_cast<uint32_t>(to);
  parcel.bytes = static_cast<uint32_t>(bytes);
  network_.send(from, std::move(parcel));
}

void FabricGateways::arrive(size_t host, Parcel&& parcel) {
  const Endpoint& dst = parcel.wire.dst;
  bool responder = dst.port == kPort;
  SocketId socket = responder ? kResponder : static_cast<SocketId>(dst.port - kFirstPort);
  Route route{socket, responder ? dst.address : Address{}, parcel.wire.src};
  world_.arrive(*gateways_[host], route, parcel.wire);
}

}  // namespace braid::sim
