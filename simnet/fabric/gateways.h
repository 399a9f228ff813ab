#pragma once

#include <utility>
#include <vector>

#include "simnet/fabric/switched_network.h"
#include "simnet/world.h"

namespace braid::sim {

/// Gateways at the hosts of a switched network, at most one per host. A gateway has one socket per
/// subflow of a pair. The subflows to a peer then differ by port, and the switches hash them to
/// different paths.
class FabricGateways final : public Medium {
 public:
  /// `sockets`: subflows of each pair. `world` and `network` must outlive this object; the world
  /// sends its datagrams here from now on.
  FabricGateways(World& world, SwitchedNetwork& network, size_t sockets);

  /// Adds a gateway at the next host that has none.
  Node& add(const TunnelOptions& options);
  Node& at(size_t host) { return *gateways_.at(host); }
  const Node& at(size_t host) const { return *gateways_.at(host); }
  size_t size() const { return gateways_.size(); }
  /// Makes two gateways peers. Call before World::start().
  void pair(size_t initiator, size_t responder);
  /// Starts the world and runs until every pair has all its subflows. Throws std::runtime_error
  /// when that takes too long.
  void start();
  /// Pairs the gateways at these hosts and starts them. A pair that occurs twice, in either order,
  /// is used once; the host with the smaller number initiates.
  void start(std::vector<std::pair<size_t, size_t>> pairs);

  Endpoint source(const Node& from, SocketId socket) const override;
  void carry(WireDatagram&& wire, size_t bytes) override;

 private:
  static constexpr SocketId kResponder = 1;
  static constexpr SocketId kFirst = 10;  // first socket of an initiator
  static constexpr uint16_t kPort = 4500;
  static Endpoint endpointOf(size_t host, SocketId socket);
  void arrive(size_t host, Parcel&& parcel);
  bool ready() const;

  World& world_;
  SwitchedNetwork& network_;
  size_t sockets_;
  std::vector<Node*> gateways_;
  std::vector<size_t> hosts_;  // host of each of the world's nodes, by node number
};

}  // namespace braid::sim
