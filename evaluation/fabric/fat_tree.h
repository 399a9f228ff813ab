#pragma once

// The fat tree of AMP's section 5.3, and the short DCTCP flows on it.

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "evaluation/fabric/fabric_experiments.h"
#include "simnet/fabric/gateways.h"
#include "simnet/fabric/hosts.h"
#include "simnet/tcp/connection.h"
#include "simnet/world.h"

namespace braid::sim {

/// Time that short flows get to complete after the measured time. Incomplete flows then count with
/// the time that has passed.
inline constexpr Duration kFatTreePatience = 2s;

/// A fat tree with a gateway and a plain host at each of its hosts. All ports are alike, except
/// those of the hosts, whose queues have no limit.
struct FatTree {
  explicit FatTree(const FabricParams& p);
  /// Sends a request over a new DCTCP connection. Calls `done` when its response is complete.
  void request(size_t client, size_t server, uint64_t ask, uint64_t answer,
               std::function<void()> done);
  /// Sends `bytes` bytes over a new DCTCP connection.
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

/// DCTCP flows that begin at given times; measures their completion times.
class ShortFlows {
 public:
  explicit ShortFlows(FatTree& tree) : tree_(tree) {}
  void add(size_t from, size_t to, uint64_t bytes, Duration ahead);
  size_t size() const { return flows_.size(); }
  size_t incomplete() const;
  /// Runs until all flows are complete, at most for kFatTreePatience.
  void finish();
  /// Completion times in seconds; for an incomplete flow, the time that has passed.
  std::vector<double> times() const;

 private:
  FatTree& tree_;
  std::vector<std::pair<Time, Time>> flows_;  // begin and end
};

/// Number, mean and percentiles of `times`.
Json timesJson(const std::vector<double>& times, size_t incomplete);

}  // namespace braid::sim
