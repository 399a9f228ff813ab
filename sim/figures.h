#pragma once

// What an experiment reports: completion times, and what the sending gateway's counters say.

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "sim/statistics.h"
#include "simnet/world.h"

namespace braid::sim {

using Json = nlohmann::ordered_json;

/// A gateway's counters, all peers and subflows together.
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
  Counters sender;       ///< what the server's gateway did for it
};

class Figures {
 public:
  void add(const FlowResult& flow);
  /// A flow among others, so that the gateway's counters do not tell what was its own.
  void add(double seconds, bool complete);
  /// Traffic that is nobody's, for the sums.
  void addTraffic(const Counters& sender) { sum_ += sender; }
  /// Covers every datagram of a world (World::hash()).
  void addHash(uint64_t hash) { hash_ = (hash_ ^ hash) * 0x9e3779b97f4a7c15; }

  size_t flows() const { return times_.size(); }
  /// Times in seconds; shares of flows, of lost packets (`recovered_share`), of protection packets
  /// (`useful_share`), of all bytes (`extra_load`).
  Json json() const;

 private:
  std::vector<double> times_;
  bool apart_ = true;  // each flow's counters are known
  size_t incomplete_ = 0, withTimeout_ = 0, withLoss_ = 0, withRecovery_ = 0;
  Counters sum_;
  uint64_t hash_ = 0;
};

}  // namespace braid::sim
