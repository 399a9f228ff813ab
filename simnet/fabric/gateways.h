#pragma once

#include <utility>
#include <vector>

#include "simnet/fabric/switched_network.h"
#include "simnet/world.h"

namespace braid::sim {

/// Gateways that stand at the hosts of a network of switches, one at a host. Each has so many sockets, so that the subflows to a peer
/// differ by their port, and switches hash them to different ways.
class FabricGateways final : public Medium {
 public:
  /// `sockets`: subflows of each pair. Both others outlive this; the world sends its datagrams here from now on.
  FabricGateways(World& world, SwitchedNetwork& network, size_t sockets);

  /// The gateway at the next host without one.
  Node& add(const TunnelOptions& options);
  Node& at(size_t host) { return *gateways_.at(host); }
  const Node& at(size_t host) const { return *gateways_.at(host); }
  size_t size() const { return gateways_.size(); }
  /// Makes two gateways peers. Before World::start().
  void pair(size_t initiator, size_t responder);
  /// Starts the world and runs until every pair has all its subflows; throws std::runtime_error when that takes too long.
  void start();
  /// Both for the gateways at these hosts: a pair that comes twice, in whatever order, is one; its smaller number
  /// initiates.
  void start(std::vector<std::pair<size_t, size_t>> pairs);

  Endpoint source(const Node& from, SocketId socket) const override;
  void carry(WireDatagram&& wire, size_t bytes) override;

 private:
  static constexpr SocketId kResponder = 1;
  static constexpr SocketId kFirst = 10;  // of those that initiate
  static constexpr uint16_t kPort = 4500;
  static Endpoint endpointOf(size_t host, SocketId socket);
  void arrive(size_t host, Parcel&& parcel);
  bool ready() const;

  World& world_;
  SwitchedNetwork& network_;
  size_t sockets_;
  std::vector<Node*> gateways_;
  std::vector<size_t> hosts_;  // of each of the world's nodes, by its number
};

}  // namespace braid::sim
