#pragma once

// AMP's fat tree of section 5.3, and the short flows of DCTCP on it.

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "sim/fabric_experiments.h"
#include "simnet/fabric/gateways.h"
#include "simnet/fabric/hosts.h"
#include "simnet/tcp/connection.h"
#include "simnet/world.h"

namespace braid::sim {

/// After the measured time: flows that are not complete by then count with the time so far.
inline constexpr Duration kFatTreePatience = 2s;

/// A fat tree, with a gateway and a plain host at each of its hosts. Every port is alike, but for those of the hosts
/// themselves, which have room for what they send.
struct FatTree {
  explicit FatTree(const FabricParams& p);
  /// A request over a fresh DCTCP connection and its response; `done` is called when that is complete.
  void request(size_t client, size_t server, uint64_t ask, uint64_t answer, std::function<void()> done);
  /// So much over a fresh DCTCP connection.
  void send(size_t from, size_t to, uint64_t bytes, std::function<void()> done);

  FabricParams params;
  World world;
  SwitchedNetwork network;
  FabricGateways gateways;
  NetworkHosts hosts;

 private:
  tcp::Connection& connect(size_t client, size_t server);
  uint16_t port_;
};

/// DCTCP flows that begin at given times.
class ShortFlows {
 public:
  explicit ShortFlows(FatTree& tree) : tree_(tree) {}
  void add(size_t from, size_t to, uint64_t bytes, Duration ahead);
  size_t size() const { return flows_.size(); }
  size_t incomplete() const;
  /// Until all are complete, at most kFatTreePatience.
  void finish();
  /// Seconds; so far where one is not complete.
  std::vector<double> times() const;

 private:
  FatTree& tree_;
  std::vector<std::pair<Time, Time>> flows_;  // begin and end
};

/// Number, mean and percentiles of times.
Json timesJson(const std::vector<double>& times, size_t incomplete);

}  // namespace braid::sim
