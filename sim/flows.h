#pragma once

// Series of flows, the same for every policy of one seed.

#include <functional>
#include <memory>

#include "sim/message_flow.h"
#include "sim/network.h"
#include "sim/sizes.h"

namespace braid::sim {

/// A flow that takes longer is given up and counts as incomplete, with this time.
inline constexpr Duration kFlowLimit = 30s;

/// Sizes of the flows of an experiment.
class FlowSizes {
 public:
  /// The distribution, and the largest flow to draw, of the experiment unless `params` say otherwise.
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

/// Runs one flow from its request to its end, and `settle` more, so that the counters know what became of its
/// packets.
FlowResult runFlow(Network& network, const Network::Pair& pair, uint16_t port, const MessageOptions& message,
                   Duration settle);

/// Makes the network of one tunnel from a seed. The tunnel is not started yet.
using MakeConnection = std::function<std::unique_ptr<Connection>(uint64_t seed)>;

/// Each flow in a fresh tunnel ("a separate connection without warm-up").
Figures coldFlows(const Params& params, FlowSizes& sizes, size_t count, const MakeConnection& make);

/// One tunnel: flows one after the other with pauses, exponential with this mean. The first
/// kWarmUpFlows do not count.
inline constexpr size_t kWarmUpFlows = 30;
void warmFlows(Figures& figures, Network& network, const Network::Pair& pair, uint64_t seed, FlowSizes& sizes,
               size_t count, size_t warmUp, Duration pause);

/// Cold or warm, as `params.warm` says.
Figures runFlows(const Params& params, FlowSizes& sizes, size_t count, const MakeConnection& make);

/// Exponential with this mean.
Duration exponential(Random& random, Duration mean);

}  // namespace braid::sim
