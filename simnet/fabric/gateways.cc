#include "simnet/fabric/gateways.h"

#include <stdexcept>
#include <string>

namespace braid::sim {

namespace {
constexpr uint16_t kFirstPort = 40000;
}  // namespace

FabricGateways::FabricGateways(World& world, SwitchedNetwork& fabric, size_t sockets)
    : world_(world), fabric_(fabric), sockets_(sockets) {
  world.attach(*this);
}

Address FabricGateways::addressOf(size_t host) {
  return Address::v4(Bytes{172, 16, static_cast<uint8_t>(host / 256), static_cast<uint8_t>(host % 256)});
}

Endpoint FabricGateways::endpointOf(size_t host, SocketId socket) {
  bool responder = socket == kResponder;
  return {addressOf(host), responder ? kPort : static_cast<uint16_t>(kFirstPort + socket)};
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
  hosts_[&node] = host;
  byAddress_[addressOf(host)] = static_cast<uint32_t>(host);
  fabric_.attach(host, Lane::kGateway, [this, host](Parcel&& parcel) { arrive(host, std::move(parcel)); });
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
    if (world_.now() >= end) throw std::runtime_error("the tunnels do not come up\n" + world_.report());
    world_.run(kStep);
    if (!world_.failure().empty()) throw std::runtime_error(world_.failure());
  } while (!ready());
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

uint64_t FabricGateways::flowOf(size_t initiator, size_t responder, size_t socket, bool back) const {
  Endpoint near = endpointOf(initiator, static_cast<SocketId>(kFirst + socket));
  Endpoint far = endpointOf(responder, kResponder);
  return back ? flowHash(far, near) : flowHash(near, far);
}

bool FabricGateways::source(const Node& from, SocketId socket, Endpoint& out) {
  out = endpointOf(hosts_.at(&from), socket);
  return true;
}

void FabricGateways::carry(const Node& from, WireDatagram&& wire, size_t bytes) {
  auto to = byAddress_.find(wire.dst.address);
  if (to == byAddress_.end()) return;
  Parcel parcel;
  parcel.flow = flowHash(wire.src, wire.dst);
  parcel.wire = std::move(wire);
  parcel.host = to->second;
  parcel.bytes = static_cast<uint32_t>(bytes);
  fabric_.send(hosts_.at(&from), std::move(parcel));
}

void FabricGateways::arrive(size_t host, Parcel&& parcel) {
  const Endpoint& dst = parcel.wire.dst;
  bool responder = dst.port == kPort;
  SocketId socket = responder ? kResponder : static_cast<SocketId>(dst.port - kFirstPort);
  Route route{socket, responder ? dst.address : Address{}, parcel.wire.src};
  world_.arrive(*gateways_[host], route, parcel.wire);
}

}  // namespace braid::sim
