#pragma once

// Series of flows. With the same seed they are the same for every policy.

#include <functional>
#include <memory>

#include "evaluation/models/figures.h"
#include "evaluation/models/network.h"
#include "evaluation/models/raw_flows.h"
#include "evaluation/models/traffic.h"

namespace braid::sim {

/// A flow that takes longer is abandoned and counts as incomplete, with this time.
inline constexpr Duration kFlowLimit = 30s;

/// Draws the sizes of an experiment's flows.
class FlowSizes {
 public:
  /// `sizes` and `most`: the experiment's default distribution and largest flow, which `params` may
  /// override.
  FlowSizes(const Params& params, const char* sizes, uint64_t most)
      : sizes_(namedSizes(params.sizes.empty() ? sizes : params.sizes)),
        most_(params.maxBytes.value_or(most)),
        random_(params.seed) {}
  uint64_t next() { return sizes_.draw(random_, most_); }

 private:
  Sizes sizes_;
  uint64_t most_;
  Random random_;
};

/// Runs one flow from its request to its end, and then `settle` longer, so that the counters
/// include the fate of all its packets.
FlowResult runFlow(Network& network, const Network::Pair& pair, uint16_t port,
                   const MessageOptions& message, Duration settle);

/// Makes the network of one tunnel from a seed, without starting the tunnel.
using MakeConnection = std::function<std::unique_ptr<Connection>(uint64_t seed)>;

/// Runs each flow in a new tunnel ("a separate connection without warm-up").
Figures coldFlows(const Params& params, FlowSizes& sizes, size_t count, const MakeConnection& make);

/// Runs the flows one after the other in one tunnel, with exponentially distributed pauses of mean
/// `pause`. The first `warmUp` flows (usually kWarmUpFlows) do not count.
inline constexpr size_t kWarmUpFlows = 30;
void warmFlows(Figures& figures, Network& network, const Network::Pair& pair, uint64_t seed,
               FlowSizes& sizes, size_t count, size_t warmUp, Duration pause);

/// Runs coldFlows(), or warmFlows() if `params.warm`.
Figures runFlows(const Params& params, FlowSizes& sizes, size_t count, const MakeConnection& make);

/// Draws from the exponential distribution with this mean.
Duration exponential(Random& random, Duration mean);

}  // namespace braid::sim
