#pragma once

#include <map>
#include <vector>

#include "simnet/fabric/switched_network.h"
#include "simnet/world.h"

namespace braid::sim {

/// Gateways that stand at the hosts of a fabric, one at a host. Each has so many sockets, so that the subflows to a peer
/// differ by their port, and switches hash them to different ways.
class FabricGateways final : public Medium {
 public:
  /// `sockets`: subflows of each pair. Both others outlive this; the world sends its datagrams here from now on.
  FabricGateways(World& world, SwitchedNetwork& fabric, size_t sockets);

  /// The gateway at the next host without one.
  Node& add(const TunnelOptions& options);
  Node& at(size_t host) { return *gateways_.at(host); }
  const Node& at(size_t host) const { return *gateways_.at(host); }
  size_t size() const { return gateways_.size(); }
  /// Makes two gateways peers. Before World::start().
  void pair(size_t initiator, size_t responder);
  /// Starts the world and runs until every pair has all its subflows; throws std::runtime_error when that takes too long.
  void start();
  /// The flow that switches see of subflow `socket` from the initiator's side, or of what comes back.
  uint64_t flowOf(size_t initiator, size_t responder, size_t socket, bool back) const;

  bool source(const Node& from, SocketId socket, Endpoint& out) override;
  void carry(const Node& from, WireDatagram&& wire, size_t bytes) override;

 private:
  static constexpr SocketId kResponder = 1;
  static constexpr SocketId kFirst = 10;  // of those that initiate
  static constexpr uint16_t kPort = 4500;
  static Address addressOf(size_t host);
  static Endpoint endpointOf(size_t host, SocketId socket);
  void arrive(size_t host, Parcel&& parcel);
  bool ready() const;

  World& world_;
  SwitchedNetwork& fabric_;
  size_t sockets_;
  std::vector<Node*> gateways_;
  std::map<const Node*, size_t> hosts_;
  std::map<Address, uint32_t> byAddress_;
};

}  // namespace braid::sim
