#pragma once

// T-RACKs' simulations (section V) rerun with Braid's ack shim. See evaluation/tracks.md.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "evaluation/models/figures.h"
#include "evaluation/racks/rack_tree.h"
#include "simnet/tcp/options.h"
#include "simnet/tcp/tcp_flow.h"

namespace braid::sim {

struct RackParams {
  std::string shim = "off";         ///< see shimNames()
  std::string scheme = "droptail";  ///< queue and TCP: disciplineOf()
  uint64_t seed = 1;
  size_t flows = 20;   ///< number of all flows, including the large ones
  bool large = false;  ///< CASE 2: a quarter of them are large (small : large = 3)
  /// Or "handshake": each flow begins with a SYN, whose time counts
  std::string setup = "established";
  size_t rounds = 5;
  uint64_t bytes = 14600;  ///< size of a small flow; default 10 MSS
  uint32_t alpha = 10;
  std::optional<uint32_t> gamma;  ///< bytes; unset: the default
  double jitter = 0;              ///< us
  /// Incast, websearch, traced: RTT without queues and transmission, ms; unset: the experiment's
  /// default
  std::optional<double> rtt;
  size_t queue =
      100;  ///< not leaf-spine: packets that wait at the bottleneck; cluster: at every port
  double load = 0.5;  ///< websearch, traced: of the bottleneck; leaf-spine: of the leaves' uplinks;
                      ///< cluster: of the clients' rack; (0, 1)
  double seconds = 10;                ///< websearch, traced: duration of the arrivals
  double time = 30;                   ///< leaf-spine: duration of the arrivals, ms
  std::string sizes = "web_search";   ///< leaf-spine, traced, cluster: name in evaluation/data
  uint64_t most = uint64_t{1} << 30;  ///< leaf-spine, traced, cluster: largest flow, bytes
  std::string recovery =
      "tcp";  ///< traced, cluster: how the hosts' TCP finds losses, tcp::recoveryNames()
  size_t hostsPerLeaf = 20;  ///< leaf-spine, cluster
  std::string control =
      "cubic";  ///< traced, cluster: of the hosts' TCP, tcp::controlNames(), unless scheme is dctcp
  size_t requests = 100;    ///< cluster: mean number of requests of each client
  bool everyone = false;    ///< cluster: all hosts are clients; false: only those of one rack
  bool background = false;  ///< cluster: each host also sends an endless flow to another rack
};

/// Position and features of the shim: "off"; "sender" with the default options; "paper" (at the
/// sender, only the duplicate ACKs of Algorithms 1 and 2); "both" (at sender and receiver); "cache"
/// (at the sender, with a copy of the segments).
std::span<const char* const> shimNames();

struct RackExperiment {
  const char* name;
  const char* what;
  Json (*run)(const RackParams&);
};
std::span<const RackExperiment> rackExperiments();

/// The TCP that the paper combines with each queue. shimOf(): the shim's options. shimJson(): the
/// shims' counters for the report.
tcp::Options tcpOf(const RackParams& params);
AckShimOptions shimOf(const RackParams& params);
Json shimJson(const ShimCounters& counters);

/// The paper's small flows have at most this many bytes.
inline constexpr uint64_t kSmallFlow = 100'000;

/// Section V-B: web search or data mining flows between the hosts of nine leaves below four spines.
Json runLeafSpine(const RackParams& params);

/// Section VI: requests between the 84 servers of the paper's testbed, from one rack's hosts or
/// from all hosts (RackParams::everyone).
Json runCluster(const RackParams& params);

/// "Average RTT without queuing" of that testbed.
inline constexpr Duration kTestbedRtt = 250us;
/// True when the hosts use DCTCP, by `scheme` or `control`. Ports then mark.
bool isDctcp(const RackParams& params);
/// The TCP of the testbed's hosts: Linux 3.18, whose data packets are ECN-capable only with DCTCP.
tcp::Options hostTcp(const RackParams& params);

/// Section III-B: web search or data mining flows at one port, with a trace of each loss of the
/// hosts' TCP.
Json runTraced(const RackParams& params);

/// The options of the tree that the parameters describe.
RackTreeOptions treeOf(const RackParams& params);

}  // namespace braid::sim
