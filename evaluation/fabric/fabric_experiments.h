#pragma once

// Experiments on networks of many switches (fat trees, leaf-spine), with a gateway that runs the
// real tunnel core at every host.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "evaluation/models/figures.h"
#include "simnet/fabric/topology.h"

namespace braid::sim {

struct FabricParams {
  std::string controller = "amp";
  std::string policy = "none";
  uint64_t seed = 1;
  size_t k = 8;              ///< of the fat tree
  double rate = 10e9;        ///< bits per second, of every link
  double delay = 2;          ///< us, of every link (AMP section 5.2)
  size_t queue = 100;        ///< packets that wait at a port
  size_t threshold = 10;     ///< K, packets
  size_t subflows = 4;       ///< of each pair
  size_t initialWindow = 2;  ///< datagrams
  double minRto = 0;         ///< least RTO, ms; 0: RFC 9002
  double time = 20;          ///< measured, ms
  /// Permutation: share of hosts with long flows; the others send short flows by DCTCP
  double longShare = 1;
  bool processor =
      false;           ///< permutation, jobs: also report CPU time, which differs from run to run
  double warmUp = 10;  ///< time before the measurement, ms
  std::string scheme = "adaptive";    ///< pods, two-racks, mesh: see trafficSchemes()
  std::string sizes = "web_search";   ///< pods, two-racks, mesh: name in evaluation/data
  uint64_t most = uint64_t{1} << 30;  ///< bytes, the largest flow
  double load = 0.5;                  ///< pods, two-racks, mesh: load of the hosts' links, (0, 1)
  double lossyShare = 0.05;           ///< pods: share of the cables that lose packets
  bool all = false;  ///< pods: the scheme carries all flows; false: only flows up to 100 KB
  /// Together: number of hosts that answer one host at once, every 5 ms; 0: none
  size_t fanOut = 0;
  bool times = false;       ///< together: also report the time of each small response
  bool blackHoles = false;  ///< lossy-links: include links that lose more than 60 %
  std::optional<size_t>
      flows;  ///< two-racks, mesh: flows; lossy-links: links; unset: the experiment's default
  double codingRate = 0;  ///< mesh: cofuso's parities for each packet; 0: by the loss rate
  /// Two-racks, mesh: loss of the lossy paths; unset: the experiment's default
  std::optional<double> loss;
  size_t ahead = 96;  ///< most segments of a long flow that wait in its host or are in flight
};

struct FabricExperiment {
  const char* name;
  const char* what;
  Json (*run)(const FabricParams&);
  std::string FabricParams::*variant;  ///< the parameter whose values are compared
};
std::span<const FabricExperiment> fabricExperiments();

/// Each host of a fat tree sends to one other host (AMP section 5.3, "general workload"): some
/// hosts send without end through their tunnels, the others send short DCTCP flows. Reports
/// goodput, Jain's index, use and queues of each layer, completion times of the short flows, and
/// packets simulated per second of CPU time.
Json runPermutation(const FabricParams& params);

/// Each host sends without end to another random host. In addition eight clients repeatedly ask ten
/// servers each at once for 64 KB by DCTCP (AMP section 5.3, "incast with background traffic").
/// Reports the times of these jobs and the same as runPermutation().
Json runJobs(const FabricParams& params);

/// Data mining (AMP figure 14): flows to random other hosts begin at each host at random, 780 us
/// apart on average. Flows below 100 KB use DCTCP, the others the tunnels. Reports the times of the
/// short flows and the progress of the others.
Json runMining(const FabricParams& params);

/// FUSO's fat tree of 64 hosts (section VI-C): hosts at 10 Gbit/s, switches joined by 40 Gbit/s, a
/// round trip of 240 us. Ports mark; the caller must still set their queue limits and thresholds.
Pods fusoTree();

/// Draws the loss rate of a lossy link of a data centre (FUSO fig. 1): of 100 such links 63 lose 1
/// to 10 % and 15 lose 10 to 60 %; within each range the logarithm is uniform. The other 22 lose 60
/// to 100 %, uniformly; they are drawn only with `blackHoles`.
double lossRate(Random& random, bool blackHoles);

/// Chooses a `share` of the cables (indices into Topology::cables()) and their loss rates
/// (lossRate() without black holes). Both directions of a cable lose alike. Of the lossy cables 22
/// % are at the hosts, 24 % below and 54 % above the aggregation switches (FUSO fig. 1; two of its
/// layers are one here).
std::vector<std::pair<size_t, double>> lossyCables(const Topology& topology, double share,
                                                   uint64_t seed);

/// FUSO's fat tree of 64 hosts (fig. 10): flows between random hosts arrive as a Poisson process,
/// and some cables lose packets. Reports the times of the flows up to 100 KB, which the scheme
/// carries, and of the larger ones, which TCP carries.
Json runPods(const FabricParams& params);

/// The schemes of runTogether(). Each adds something to the hosts' unmodified TCP: nothing ("tcp"),
/// the ack shim ("shim"), a tunnel with only recovery ("fuso", "cofuso") or only rate control
/// ("amp" and its rivals), or all of these ("together").
std::vector<std::string> togetherSchemes();

/// FUSO's fat tree with the ports of T-RACKs: requests by CUBIC, both between random hosts
/// (Poisson) and from one client to many servers, while some cables lose packets. Reports the times
/// of the responses, separately for those up to 100 KB.
Json runTogether(const FabricParams& params);

/// Checks the draws that runPods() makes from FUSO's fig. 1: reports mean and shares of the loss
/// rates of many links, and the layers of the lossy ones.
Json runLossyLinks(const FabricParams& params);

/// FUSO's testbed with failure and congestion at once (section VI-B.2, fig. 7): Poisson flows from
/// the three hosts of one rack to the three of the other, over three paths of which one loses
/// packets. The scheme carries small flows, TCP the larger ones, over five long-lived connections
/// of each kind between two hosts.
Json runTwoRacks(const FabricParams& params);

/// CoFUSO's mesh of routers with congestion (section 6.2.3, fig. 14): ten hosts send Poisson flows
/// up to 100 KB to ten others, each flow in its own connection. Four of the links between the inner
/// routers lose packets.
Json runMesh(const FabricParams& params);

}  // namespace braid::sim
