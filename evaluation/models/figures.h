#pragma once

// The results of an experiment: completion times and the counters of the sending gateway.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "evaluation/models/statistics.h"
#include "simnet/world.h"

namespace braid::sim {

using Json = nlohmann::ordered_json;

/// A gateway's counters, summed over all peers and subflows.
struct Counters : SendCounts, ProtectionCounts, OutboundCounts {
  Counters() = default;
  explicit Counters(const Node& node);
  Counters& operator+=(const Counters& b);
  Counters operator-(const Counters& b) const;
};

/// One flow's result.
struct FlowResult {
  double seconds = 0;
  bool complete = false;
  bool timeout = false;  ///< a PTO of the server's gateway fired before it was complete
  Counters sender;       ///< counters of the server's gateway for this flow
};

class Figures {
 public:
  void add(const FlowResult& flow);
  /// Adds a flow that ran beside others, so that the gateway's counters cannot be attributed to it.
  void add(double seconds, bool complete);
  /// Adds traffic that belongs to no single flow to the sums.
  void addTraffic(const Counters& sender) { sum_ += sender; }
  /// Adds a world's hash (World::hash()), which covers all its datagrams.
  void addHash(uint64_t hash) { hash_ = (hash_ ^ hash) * 0x9e3779b97f4a7c15; }

  size_t flows() const { return times_.size(); }
  /// Times in seconds, and shares: of all flows, of lost packets (`recovered_share`), of protection
  /// packets (`useful_share`), of all bytes (`extra_load`).
  Json json() const;

 private:
  std::vector<double> times_;
  bool apart_ = true;  // each flow's counters are known
  size_t incomplete_ = 0, withTimeout_ = 0, withLoss_ = 0, withRecovery_ = 0;
  Counters sum_;
  uint64_t hash_ = 0;
};

}  // namespace braid::sim
