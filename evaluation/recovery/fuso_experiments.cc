// FUSO, section VI-B: loss in the network and at the edge, incast, number of subflows.

#include <algorithm>

#include "evaluation/models/flows.h"
#include "evaluation/models/timeout_model.h"
#include "evaluation/recovery/recovery_experiments.h"

namespace braid::sim {

namespace {
/// Windows of all subflows of a connection together (section VI-A).
constexpr size_t kTotalWindow = 16;
/// Section VI-B.1: small requests, 10 Mbit/s of them in all.
constexpr uint64_t kSmall = 100 * 1000;
constexpr double kLoad = 10e6;
/// Clients on H4-H6 with 5 connections to each of H1-H3.
constexpr size_t kConnections = 3 * 3 * 5;
/// Mean request size, used to compute the load: that of web_search up to kSmall.
constexpr double kMeanRequest = 35e3;
/// "we generate 100KB data to warmup each connection": three mean requests.
constexpr size_t kWarmUp = 3;
}  // namespace

// The connections run one at a time instead of in parallel. At a load of 0.3 % of the fabric they
// would hardly ever meet.
Json runFabric(const Params& params) {
  FlowSizes sizes(params, "web_search", kSmall);
  size_t subflows = params.subflows.value_or(4);
  TunnelOptions options =
      tunnelOptions(params, "newreno", std::max<size_t>(kTotalWindow / subflows, 2));
  Loss loss{params.loss.value_or(0.04), params.burst.value_or(1)}, none;
  size_t perConnection = (params.flows ? params.flows : 4500) / kConnections + 1;
  Duration pause = fromSeconds(kMeanRequest * 8 / (kLoad / kConnections));
  Random seeds(params.seed);
  Figures figures;
  for (size_t i = 0; i < kConnections; ++i) {
    uint64_t seed = seeds.next();
    Fabric fabric(seed, options, params.edge ? none : loss, params.edge ? loss : none);
    size_t client = 4 + i % 3, server = 1 + i / 3 % 3;
    Network::Pair pair = fabric.connect(client, server, subflows);
    warmFlows(figures, fabric.network, pair, seed, sizes, perConnection, kWarmUp, pause);
  }
  return figures.json();
}

// Section IV, fig. 4: flows of 100 KB, each in its own connection.
Json runTimeouts(const Params& params) {
  constexpr Duration kAfterwards = 10ms;
  constexpr size_t kSegment = 1448;  // payload of a segment in the paper's TCP
  uint64_t bytes = params.maxBytes.value_or(kSmall);
  size_t subflows = params.subflows.value_or(4);
  Loss loss{params.loss.value_or(0.01), params.burst.value_or(1)};
  TunnelOptions options =
      tunnelOptions(params, "newreno", std::max<size_t>(kTotalWindow / subflows, 2));
  Random seeds(params.seed);
  Figures figures;
  for (size_t i = 0; i < (params.flows ? params.flows : 10'000); ++i) {
    Fabric fabric(seeds.next(), options, {}, {});
    Network::Pair pair = fabric.connect(4, 1, subflows);
    fabric.network.lose(*fabric.path(0).down, loss);
    fabric.network.start();
    figures.add(runFlow(fabric.network, pair, 1000,
                        {.bytes = bytes, .mss = segmentSize(*pair.server)}, kAfterwards));
    figures.addHash(fabric.network.world.hash());
  }
  uint64_t packets = (bytes + kSegment - 1) / kSegment;
  TimeoutModel model{.loss = loss.rate,
                     .packets = static_cast<double>(packets),
                     .paths = Fabric::kPaths,
                     .subflows = subflows};
  Json j = figures.json();
  j["closed_form"] = params.policy == "none" ? model.mptcp() : model.fuso();
  return j;
}

// H1 asks `params.senders` senders on H2-H6 at once, each for 64 KB. The time of a round is that of
// its last response.
Json runIncast(const Params& params) {
  constexpr uint64_t kAnswer = 64 << 10;
  constexpr Duration kBetween = 500ms;
  size_t subflows = params.subflows.value_or(4);
  size_t rounds = params.flows ? params.flows : 10;
  TunnelOptions options =
      tunnelOptions(params, "newreno", std::max<size_t>(kTotalWindow / subflows, 2));
  Fabric fabric(params.seed, options, {}, {});
  for (size_t i = 0; i < params.senders; ++i) fabric.connect(1, 2 + i % 5, subflows);
  World& world = fabric.network.world;
  fabric.network.start();
  auto counters = [&] {
    Counters sum;
    for (const Network::Pair& pair : fabric.network.pairs) sum += Counters(*pair.server);
    return sum;
  };
  Counters before = counters();
  Figures figures;
  for (size_t round = 0; round < rounds; ++round) {
    world.run(kBetween);
    std::vector<const MessageFlow*> flows;
    for (const Network::Pair& pair : fabric.network.pairs) {
      MessageOptions message{kAnswer, segmentSize(*pair.server)};
      auto port = static_cast<uint16_t>(1000 + round);
      flows.push_back(&world.add<MessageFlow>(*pair.client, *pair.server, port, message));
    }
    Time begun = world.now();
    bool complete = world.runUntil(
        [&] {
          return std::all_of(flows.begin(), flows.end(),
                             [](const MessageFlow* f) { return f->done(); });
        },
        kFlowLimit);
    figures.add(toSeconds(world.now() - begun), complete);
  }
  world.run(kBetween);
  figures.addTraffic(counters() - before);
  figures.addHash(world.hash());
  return figures.json();
}

}  // namespace braid::sim
