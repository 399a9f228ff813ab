#pragma once

// Requests between the hosts of a switched network, as in FUSO section VI. The scheme under test
// carries the latency-sensitive (small) flows, plain TCP the larger ones.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "evaluation/models/figures.h"
#include "evaluation/models/traffic.h"
#include "simnet/fabric/gateways.h"
#include "simnet/fabric/hosts.h"
#include "simnet/tcp/connection.h"

namespace braid::sim {

struct SchemeTrafficOptions {
  std::string scheme;        ///< see trafficSchemes()
  uint64_t seed = 1;         ///< for hashes, losses and keys
  uint64_t sensitive = 0;    ///< bytes: the largest flow that the scheme carries
  size_t subflows = 4;       ///< of a tunnel
  size_t subflowWindow = 4;  ///< initial window of each subflow, datagrams
  uint32_t tcpWindow = 16;   ///< initial window of each TCP connection, segments
  /// Time after the last flow's begin. Flows incomplete then count with the time that has passed.
  Duration patience = 3s;
  Duration minRto = 5ms;  ///< minimum RTO of TCP and tunnels (FUSO section V-B)
  bool ecn = true;        ///< TCP uses ECN
  /// Options::correctiveBin of "tcp-ir", round trips (FUSO section VI-A)
  double correctiveBin = 0.5;
  RecoveryOptions recovery{};  ///< recovery options of the tunnels
  /// Packet buffers of a gateway, in addition to those for the flows that its host sends.
  size_t gatewayBuffers = 16384;
  /// Two hosts share one connection for the scheme's flows and one for the others, and each carries
  /// one flow after the other. False: each flow has its own connection. Two hosts always share one
  /// tunnel.
  bool longLived = false;
  /// Cables (indices) and the share of packets that each loses once all connections are open.
  std::vector<std::pair<size_t, double>> lossy;
};

/// The schemes: TCP and its improvements ("tcp", "tlp", "tcp-ir", "proactive", "repflow"), or
/// Braid's tunnel with a recovery policy ("fuso", "cofuso", "adaptive", or "none", which resembles
/// MPTCP without opportunistic retransmission).
std::span<const char* const> trafficSchemes();

class SchemeTraffic {
 public:
  /// Flows up to kSmall bytes are "small" in the results, those up to kMedium "medium".
  static constexpr uint64_t kSmall = 100'000;
  static constexpr uint64_t kMedium = 10'000'000;

  /// `flows`: in the order of their begin. Throws std::runtime_error for an unknown scheme, and
  /// when a tunnel does not come up.
  SchemeTraffic(const SchemeTrafficOptions& options, const Topology& topology,
                std::vector<HostFlow> flows);
  /// Opens the connections, makes the lossy cables lose packets, and runs until all flows are
  /// complete or `patience` has passed. Call it once. Throws std::runtime_error when a connection
  /// does not come up, and when a gateway dropped a segment because its queue or pool was full.
  void run();
  /// Times in seconds; an incomplete flow counts with the time that has passed.
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
  Counters before_;  // counters of the servers' gateways at the start
  size_t done_ = 0;
  uint16_t port_;
};

}  // namespace braid::sim
