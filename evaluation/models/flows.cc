#include "evaluation/models/flows.h"

#include <cmath>

namespace braid::sim {

namespace {
constexpr uint16_t kFirstPort = 1000;
/// Time after a flow in its own tunnel, for late copies and the last ACKs.
constexpr Duration kSettle = 200ms;
/// Mean pause between the flows of a warm tunnel.
constexpr Duration kPause = 200ms;
}  // namespace

Duration exponential(Random& random, Duration mean) {
  return fromSeconds(-std::log(1 - random.uniform()) * toSeconds(mean));
}

FlowResult runFlow(Network& network, const Network::Pair& pair, uint16_t port,
                   const MessageOptions& message, Duration settle) {
  Counters before(*pair.server);
  auto& flow = network.world.add<MessageFlow>(*pair.client, *pair.server, port, message);
  network.world.runUntil([&] { return flow.done(); }, kFlowLimit);
  FlowResult result;
  result.seconds = toSeconds(flow.completionTime());
  result.complete = flow.done();
  result.timeout = (Counters(*pair.server) - before).timeouts > 0;
  network.world.run(settle);
  requireSound(network.world);
  result.sender = Counters(*pair.server) - before;
  return result;
}

Figures coldFlows(const Params& params, FlowSizes& sizes, size_t count,
                  const MakeConnection& make) {
  Figures figures;
  Random seeds(params.seed);
  for (size_t i = 0; i < count; ++i) {
    std::unique_ptr<Connection> connection = make(seeds.next());
    Network& network = connection->network;
    network.start();
    MessageOptions message{.bytes = sizes.next(), .mss = segmentSize(*connection->pair.server)};
    figures.add(runFlow(network, connection->pair, kFirstPort, message, kSettle));
    figures.addHash(network.world.hash());
  }
  return figures;
}

void warmFlows(Figures& figures, Network& network, const Network::Pair& pair, uint64_t seed,
               FlowSizes& sizes, size_t count, size_t warmUp, Duration pause) {
  Random random(seed);
  network.start();
  uint16_t port = kFirstPort;
  for (size_t i = 0; i < warmUp + count; ++i) {
    MessageOptions message{.bytes = sizes.next(), .mss = segmentSize(*pair.server)};
    FlowResult result = runFlow(network, pair, port++, message, exponential(random, pause));
    if (i >= warmUp) figures.add(result);
  }
  figures.addHash(network.world.hash());
}

Figures runFlows(const Params& params, FlowSizes& sizes, size_t count, const MakeConnection& make) {
  if (!params.warm) return coldFlows(params, sizes, count, make);
  Figures figures;
  std::unique_ptr<Connection> connection = make(params.seed);
  warmFlows(figures, connection->network, connection->pair, params.seed, sizes, count, kWarmUpFlows,
            kPause);
  return figures;
}

}  // namespace braid::sim
