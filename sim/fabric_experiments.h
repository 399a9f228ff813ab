#pragma once

// Experiments on networks of many switches: fat trees and leaf-spine, with the real core at every host.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/figures.h"
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
  double longShare = 1;      ///< permutation: of the hosts; the others send short flows by DCTCP
  bool processor = false;    ///< permutation, jobs: tell what the processor took, which is not the same twice
  double warmUp = 10;        ///< ms before that
  std::string scheme = "adaptive";    ///< pods, two-racks, mesh: see trafficSchemes()
  std::string sizes = "web_search";   ///< pods, two-racks, mesh: name in sim/data
  uint64_t most = uint64_t{1} << 30;  ///< bytes, the largest flow
  double load = 0.5;                  ///< pods, two-racks, mesh: of the hosts' links, (0, 1)
  double lossyShare = 0.05;           ///< pods: of the cables
  bool all = false;                   ///< pods: the scheme carries all flows; false: those up to 100 KB
  size_t fanOut = 0;                  ///< together: hosts that answer one at once, every 5 ms; 0: none
  bool blackHoles = false;            ///< lossy-links: those that lose more than 60 % too
  std::optional<size_t> flows;        ///< two-racks, mesh; lossy-links: links; unset: the experiment's own
  double codingRate = 0;              ///< mesh: cofuso's parities for each packet; 0: by the loss rate
  std::optional<double> loss;         ///< two-racks, mesh: of the lossy paths; unset: the experiment's own
  size_t ahead = 96;                  ///< segments that wait in each host or are on their way
};

struct FabricExperiment {
  const char* name;
  const char* what;
  Json (*run)(const FabricParams&);
  std::string FabricParams::*variant;  ///< what is compared
};
std::span<const FabricExperiment> fabricExperiments();

/// Each host of a fat tree has one receiver (AMP section 5.3, "general workload"). Some send to it all the time through
/// their tunnels, the others short flows of DCTCP. Goodput, Jain's index, use and queues of each layer, times of the
/// short flows, and packets for each second of the processor.
Json runPermutation(const FabricParams& params);

/// Each host sends to another at random all the time; beside that eight clients ask ten servers at once for 64 KB each,
/// by DCTCP, again and again (AMP section 5.3, "incast with background traffic"). Times of these jobs, and as above.
Json runJobs(const FabricParams& params);

/// Data mining (AMP figure 14): flows arrive at each host at random, 780 us apart in the mean, for any other host. Those
/// below 100 KB go by DCTCP, the others through tunnels. Times of the short ones, and what becomes of the others.
Json runMining(const FabricParams& params);

/// FUSO's fat tree of 64 hosts (section VI-C): hosts at 10 Gbit/s, switches joined by 40 Gbit/s, a round trip of 240 us.
/// Ports mark; their room and thresholds are still to be set.
Pods fusoTree();

/// The loss rate of a lossy link of a data centre (FUSO fig. 1): 63 of 100 lose 1 to 10 %, 15 lose 10 to 60 %; within
/// these the logarithm is uniform. The other 22 lose more, up to all, evenly; they come only with `blackHoles`.
double lossRate(Random& random, bool blackHoles);

/// Which cables (Topology::cables()) lose packets, and how many (lossRate() without black holes): a share of all, both
/// directions alike. 22 in a hundred of them are at the hosts, 24 below and 54 above the aggregation switches (FUSO
/// fig. 1; two of its layers are one here).
std::vector<std::pair<size_t, double>> lossyCables(const Topology& topology, double share, uint64_t seed);

/// FUSO's fat tree of 64 hosts (fig. 10): Poisson flows between random hosts, some cables lose packets. Times of
/// the flows up to 100 KB, which the scheme carries, and of the larger ones, which TCP carries.
Json runPods(const FabricParams& params);

/// What stands beside the hosts' unmodified TCP in runTogether(): nothing ("tcp"), the ack shim ("shim"), a tunnel with
/// recovery ("fuso", "cofuso") or rate control ("amp" and its rivals) alone, or all of it ("together").
std::vector<std::string> togetherSchemes();

/// FUSO's fat tree with the ports of T-RACKs: requests by CUBIC, Poisson between random hosts and many servers to one
/// client, while some cables lose packets. Times of the responses, those up to 100 KB apart.
Json runTogether(const FabricParams& params);

/// FUSO's fig. 1 as runPods() draws from it: mean and shares of the loss rates of many links, and where lossy ones lie.
Json runLossyLinks(const FabricParams& params);

/// FUSO's testbed with failure and congestion at once (section VI-B.2, fig. 7): Poisson flows from three hosts of one
/// rack to the three of the other, over three paths of which one loses packets. Small flows by the scheme, larger ones
/// by TCP, over five long-lived connections of each kind between two hosts.
Json runTwoRacks(const FabricParams& params);

/// CoFUSO's mesh of routers with congestion (section 6.2.3, fig. 14): ten hosts send Poisson flows up to 100 KB to ten
/// others, each flow in a connection of its own, over links of which four between the inner routers lose packets.
Json runMesh(const FabricParams& params);

}  // namespace braid::sim
