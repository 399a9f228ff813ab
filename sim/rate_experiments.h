#pragma once

// AMP's experiments (sections 3 and 5.2): what several controllers make of one bottleneck that marks.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "figures.h"
#include "network.h"
#include "scheduler/controller.h"

namespace braid::sim {

/// The fabric of AMP's section 5.1 and what runs over it.
struct RateParams {
  std::string controller = "amp";
  AmpOptions amp{};
  uint64_t seed = 1;
  double rate = 10e9;          ///< bits per second, of every link
  double rtt = 24;             ///< us without queues: 20 packets (section 3.2)
  size_t queue = 100;          ///< packets
  size_t threshold = 10;       ///< K, packets
  size_t subflows = 4;         ///< of a multipath connection
  size_t initialWindow = 2;    ///< datagrams
  double minRto = 0;           ///< least RTO, ms; 0: RFC 9002
  size_t senders = 30;         ///< incast: k; sweep: connections
  uint64_t bytes = 128 << 10;  ///< incast: of a flow
  size_t rounds = 20;          ///< incast
  size_t multipath = 1;        ///< syndrome: connections with the controller
  size_t singles = 4;          ///< syndrome: DCTCP connections
  double time = 200;           ///< syndrome, sweep: ms
};

struct RateExperiment {
  const char* name;
  const char* what;
  Json (*run)(const RateParams&);
};
std::span<const RateExperiment> rateExperiments();

/// Fig. 1: many senders behind one switch, one receiver. Each connection is a tunnel of its own.
class ManyToOne {
 public:
  explicit ManyToOne(const RateParams& params);
  /// One more sender; `controller` "dctcp", "newreno", ... or "bbr" have a single subflow.
  Network::Pair add(const std::string& controller);
  /// Up to one RTT: no two flows begin at the same moment.
  Duration startOffset() { return fromSeconds(params_.rtt * 1e-6 * hair_.uniform()); }
  SharedLink& bottleneck() { return *shared_.down; }
  Network network;

 private:
  const RateParams& params_;
  Random hair_;
  Cable shared_;
};

/// Jain's fairness index; 1 of nothing.
double jain(std::span<const double> values);

}  // namespace braid::sim
