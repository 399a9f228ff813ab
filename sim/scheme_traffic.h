#pragma once

// Requests between the hosts of a network of switches, as FUSO has them (section VI): those that are sensitive to
// latency go by the scheme that is compared, the larger ones by plain TCP.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/figures.h"
#include "sim/host_flow.h"
#include "simnet/fabric/gateways.h"
#include "simnet/fabric/hosts.h"
#include "simnet/tcp/connection.h"

namespace braid::sim {

struct SchemeTrafficOptions {
  std::string scheme;        ///< see trafficSchemes()
  uint64_t seed = 1;         ///< of hashes, losses and keys
  uint64_t sensitive = 0;    ///< bytes: the largest flow that the scheme carries
  size_t subflows = 4;       ///< of a tunnel
  size_t subflowWindow = 4;  ///< datagrams at the start, of each subflow
  uint32_t tcpWindow = 16;   ///< segments at the start, of each TCP connection
  Duration patience = 3s;    ///< after the last begin; what is not complete then counts with the time so far
  Duration minRto = 5ms;     ///< of TCP and tunnels (FUSO section V-B)
  bool ecn = true;           ///< of TCP
  double correctiveBin = 0.5;     ///< of "tcp-ir", round trips (FUSO section VI-A)
  RecoveryOptions recovery{};     ///< of tunnels
  size_t gatewayBuffers = 16384;  ///< packets of a gateway, besides those for the flows that its host sends
  /// Two hosts have one connection for what goes by the scheme and one for the rest, each for one flow after the other;
  /// false: each flow has its own. Two hosts always have one tunnel.
  bool longLived = false;
  /// Cables and the share of packets that they lose once all connections are open.
  std::vector<std::pair<size_t, double>> lossy;
};

/// TCP and what improves it ("tcp", "tlp", "tcp-ir", "proactive", "repflow"), or Braid's tunnel with a recovery policy
/// ("none", which is as MPTCP without its opportunistic retransmission, "fuso", "cofuso", "adaptive").
std::span<const char* const> trafficSchemes();

class SchemeTraffic {
 public:
  /// Flows up to so many bytes are "small" in the figures.
  static constexpr uint64_t kSmall = 100'000;
  static constexpr uint64_t kMedium = 10'000'000;

  /// Flows in the order of their begin. Throws std::runtime_error for an unknown scheme, and when a tunnel does not come up.
  SchemeTraffic(const SchemeTrafficOptions& options, const Topology& topology, std::vector<HostFlow> flows);
  /// Opens the connections, lets cables lose, and runs until all flows are complete or patience ends. Once. Throws
  /// std::runtime_error when a connection does not come up, and when a gateway dropped a segment for want of room.
  void run();
  /// Times in seconds; a flow that is not complete counts with the time so far.
  Json json() const;

 private:
  bool isByScheme(const HostFlow& flow) const { return flow.bytes <= options_.sensitive; }
  void startGateways();
  void sendByTunnel(HostFlow& flow);
  void sendByTcp(HostFlow& flow);
  tcp::Connection& connectionFor(const HostFlow& flow, size_t copy);
  void finish(HostFlow& flow);
  Counters tunnels() const;
  uint16_t nextPort();

  SchemeTrafficOptions options_;
  World world_;
  SwitchedNetwork network_;
  NetworkHosts hosts_;
  FabricGateways gateways_;
  std::vector<HostFlow> flows_;
  std::vector<tcp::Connection*> connections_;
  std::map<std::tuple<size_t, size_t, bool, size_t>, tcp::Connection*>
      open_;         // long-lived ones: hosts, by scheme, copy
  Counters before_;  // of the gateways of servers, at the start
  size_t done_ = 0;
  uint16_t port_;
};

}  // namespace braid::sim
