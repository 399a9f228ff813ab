#pragma once

// AMP's experiments (sections 3 and 5.2): what several controllers make of one bottleneck that marks.

#include <span>
#include <string>

#include "sim/network.h"
#include "sim/rate_params.h"

namespace braid::sim {

/// AMP's, and those of wan_experiments.h.
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
  /// Adds all subflows, by their paths.
  void watch(Series& series) const;
  Network network;

 private:
  const RateParams& params_;
  Random hair_;
  Cable shared_;
};

}  // namespace braid::sim
