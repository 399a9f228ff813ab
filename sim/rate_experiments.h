#pragma once

// AMP's experiments (sections 3 and 5.2): several controllers at one bottleneck that marks.

#include <span>
#include <string>

#include "sim/network.h"
#include "sim/rate_params.h"

namespace braid::sim {

/// AMP's experiments and those of wan_experiments.h.
std::span<const RateExperiment> rateExperiments();

/// Fig. 1: many senders behind one switch, one receiver. Each connection has its own tunnel.
class ManyToOne {
 public:
  explicit ManyToOne(const RateParams& params);
  /// Adds a sender. Single-path controllers ("dctcp", "newreno", "bbr", ...) have one subflow.
  Network::Pair add(const std::string& controller);
  /// A random time up to one RTT, so that no two flows begin at the same moment.
  Duration startOffset() { return fromSeconds(params_.rtt * 1e-6 * hair_.uniform()); }
  SharedLink& bottleneck() { return *shared_.down; }
  /// Adds all subflows to `series`, labelled by their paths.
  void watch(Series& series) const;
  Network network;

 private:
  const RateParams& params_;
  Random hair_;
  Cable shared_;
};

}  // namespace braid::sim
