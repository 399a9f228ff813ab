#pragma once

// T-RACKs' simulations (section V) rerun with our shim: docs/evaluation.md.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/figures.h"
#include "sim/rack_tree.h"
#include "simnet/tcp/options.h"
#include "simnet/tcp_flow.h"

namespace braid::sim {

struct RackParams {
  std::string shim = "off";         ///< see shimNames()
  std::string scheme = "droptail";  ///< queue and TCP: disciplineOf()
  uint64_t seed = 1;
  size_t flows = 20;                  ///< in all, large ones too
  bool large = false;                 ///< CASE 2: a quarter of them are large (small : large = 3)
  std::string setup = "established";  ///< or "handshake": a SYN at the flow's start, which counts
  size_t rounds = 5;
  uint64_t bytes = 14600;  ///< of a small flow: 10 MSS
  uint32_t alpha = 10;
  std::optional<uint32_t> gamma;  ///< bytes; unset: the default
  double jitter = 0;              ///< us
  std::optional<double>
      rtt;  ///< incast, websearch, traced: ms, without queues and transmission; unset: the experiment's
  size_t queue = 100;  ///< not leaf-spine: packets that wait at the bottleneck; cluster: at every port
  double load =
      0.5;  ///< websearch, traced: of the bottleneck; leaf-spine: of the leaves' uplinks; cluster: of the clients' rack; (0, 1)
  double seconds = 10;                ///< websearch, traced: of arrivals
  double time = 30;                   ///< leaf-spine: of arrivals, ms
  std::string sizes = "web_search";   ///< leaf-spine, traced, cluster: name in sim/data
  uint64_t most = uint64_t{1} << 30;  ///< leaf-spine, traced, cluster: of a flow, bytes
  std::string recovery = "tcp";  ///< traced, cluster: how the hosts' TCP finds losses, tcp::recoveryNames()
  size_t hostsPerLeaf = 20;      ///< leaf-spine, cluster
  std::string control =
      "cubic";            ///< traced, cluster: of the hosts' TCP, tcp::controlNames(), unless scheme is dctcp
  size_t requests = 100;  ///< cluster: of each client, in the mean
  bool everyone = false;  ///< cluster: all hosts are clients; false: those of one rack
  bool background = false;  ///< cluster: each host also sends an endless flow to another rack
};

/// Where a shim stands and what it may do: "off"; "sender", with the default options; "paper", the duplicate
/// ACKs of Algorithms 1 and 2 alone; "both", at the receiver too; "cache", at the sender, with the segments
/// kept.
std::span<const char* const> shimNames();

struct RackExperiment {
  const char* name;
  const char* what;
  Json (*run)(const RackParams&);
};
std::span<const RackExperiment> rackExperiments();

/// The TCP that the paper pairs with each queue; the shim's options; what shims did, as a report says it.
TcpOptions tcpOf(const RackParams& params);
AckShimOptions shimOf(const RackParams& params);
Json shimJson(const ShimCounters& counters);

/// Flows of the paper up to this size are small. Bytes.
inline constexpr uint64_t kSmallFlow = 100'000;

/// Section V-B: web search or data mining between the hosts of nine leaves below four spines.
Json runLeafSpine(const RackParams& params);

/// Section VI: requests between the 84 servers of the paper's testbed, one to all or all to all.
Json runCluster(const RackParams& params);

/// "Average RTT without queuing" of that testbed.
inline constexpr Duration kTestbedRtt = 250us;
/// Whether its hosts have DCTCP, by `scheme` or `control`; then ports mark.
bool isDctcp(const RackParams& params);
/// A host of it: Linux 3.18, whose data are ECN-capable with DCTCP alone.
tcp::Options hostTcp(const RackParams& params);

/// Section III-B: web search or data mining at one port, each loss of the hosts' TCP traced.
Json runTraced(const RackParams& params);

/// The tree that the parameters describe.
RackTreeOptions treeOf(const RackParams& params);

}  // namespace braid::sim
