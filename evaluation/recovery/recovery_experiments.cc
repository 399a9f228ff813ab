// The list of the experiments, and those that are not in the papers: an edge router with WiFi and
// LTE, a download that fills both, and short flows beside it.

#include "evaluation/recovery/recovery_experiments.h"

#include <array>

#include "evaluation/models/flows.h"
#include "simnet/tcp/tcp_flow.h"

namespace braid::sim {

namespace {

/// WiFi with 50 Mbit/s and 20 ms RTT, and LTE with 30 Mbit/s and 60 ms RTT, with the buffers of
/// consumer routers.
struct Home : Connection {
  Home(uint64_t seed, const TunnelOptions& options, const Loss& wifi) : Connection(seed, options) {
    // The links differ slightly from seed to seed. Without losses, all seeds would otherwise give
    // the same start.
    Random hair(seed);
    auto about = [&](Duration delay) {
      return delay + std::chrono::microseconds(hair.below(1000));
    };
    LinkOptions fast{.rateBitsPerSecond = 50e6, .delay = about(10ms)},
        slow{.rateBitsPerSecond = 30e6, .delay = about(30ms)};
    network.lose(network.join(pair, "wifi", fast, fast), wifi);
    network.join(pair, "lte", slow, slow);
  }
};

constexpr uint16_t kElephantPort = 999;
constexpr uint64_t kElephantBytes = uint64_t{1} << 50;
/// Time for the large flow to start, which is not measured.
constexpr Duration kRampUp = 3s;

}  // namespace

Json runBulk(const Params& params) {
  Duration time = std::chrono::seconds(params.flows ? params.flows : 20);
  Loss loss{params.loss.value_or(0), params.burst.value_or(1)};
  Home home(params.seed, tunnelOptions(params, TunnelOptions{}.controller), loss);
  World& world = home.network.world;
  home.network.start();
  auto& download = world.add<TcpFlow>(*home.pair.server, *home.pair.client, kElephantPort,
                                      TcpOptions{.bytes = kElephantBytes});
  world.run(kRampUp);
  Counters before(*home.pair.server);
  uint64_t received = download.received();
  world.run(time);
  Figures figures;
  figures.addTraffic(Counters(*home.pair.server) - before);
  figures.addHash(world.hash());
  Json j = figures.json();
  j["goodput_mbit"] =
      static_cast<double>(download.received() - received) * 8 / 1e6 / toSeconds(time);
  return j;
}

Json runDownloads(const Params& params) {
  constexpr Duration kPause = 500ms;
  uint64_t bytes = params.maxBytes.value_or(500'000);
  size_t count = params.flows ? params.flows : 100;
  Home home(params.seed, tunnelOptions(params, TunnelOptions{}.controller),
            {params.loss.value_or(0), params.burst.value_or(1)});
  World& world = home.network.world;
  home.network.start();
  Random pauses(params.seed);
  Counters before(*home.pair.server);
  Figures figures;
  for (size_t i = 0; i < count; ++i) {
    Time begun = world.now();
    auto port = static_cast<uint16_t>(1000 + i);
    auto& download =
        world.add<TcpFlow>(*home.pair.server, *home.pair.client, port, TcpOptions{.bytes = bytes});
    world.runUntil([&] { return download.done(); }, kFlowLimit);
    figures.add(toSeconds(world.now() - begun), download.done());
    world.run(exponential(pauses, kPause));
  }
  figures.addTraffic(Counters(*home.pair.server) - before);
  figures.addHash(world.hash());
  return figures.json();
}

Json runMice(const Params& params) {
  constexpr Duration kBetween = 200ms;
  constexpr uint64_t kMouse = 16 << 10;
  size_t count = params.flows ? params.flows : 600;
  Loss loss{params.loss.value_or(0.02), params.burst.value_or(1)};
  Home home(params.seed, tunnelOptions(params, TunnelOptions{}.controller), loss);
  World& world = home.network.world;
  home.network.start();
  TcpFlow* elephant = nullptr;
  if (!params.alone) {
    elephant = &world.add<TcpFlow>(*home.pair.server, *home.pair.client, kElephantPort,
                                   TcpOptions{.bytes = kElephantBytes});
  }
  world.run(kRampUp);
  Counters before(*home.pair.server);
  uint64_t received = elephant ? elephant->received() : 0;
  Time begun = world.now();
  Random arrivals(params.seed);
  std::vector<const MessageFlow*> mice;
  MessageOptions message{kMouse, segmentSize(*home.pair.server)};
  for (size_t i = 0; i < count; ++i) {
    world.run(exponential(arrivals, kBetween));
    auto port = static_cast<uint16_t>(1000 + i);
    mice.push_back(&world.add<MessageFlow>(*home.pair.client, *home.pair.server, port, message));
  }
  world.runUntil([&] { return mice.back()->done(); }, kFlowLimit);
  Duration took = world.now() - begun;
  uint64_t carried = elephant ? elephant->received() - received : 0;
  world.run(1s);
  Figures figures;
  for (const MessageFlow* mouse : mice)
    figures.add(toSeconds(mouse->completionTime()), mouse->done());
  figures.addTraffic(Counters(*home.pair.server) - before);
  figures.addHash(world.hash());
  Json j = figures.json();
  j["elephant_mbit"] = static_cast<double>(carried) * 8 / 1e6 / toSeconds(took);
  return j;
}

std::span<const Experiment> experiments() {
  static constexpr auto kExperiments = std::to_array<Experiment>({
      {"targeted", "CoFUSO 6.1.1: 29 packets, one of the first subflow's lost in turn",
       runTargeted},
      {"targeted-random", "the same, one of all 29 lost at random", runTargetedRandom},
      {"responses", "CoFUSO 6.1.2: web responses over two 50 ms paths, one lossy", runResponses},
      {"traced-responses", "the same, and of each when protection hit a loss and what room it had",
       runTracedResponses},
      {"routers", "CoFUSO 6.2.2: web responses over a mesh of routers with lossy links",
       runRouters},
      {"fabric", "FUSO VI-B.1: small requests over three paths of a data centre, one lossy",
       runFabric},
      {"timeouts", "FUSO IV: flows of 100 KB over three paths, one loses towards the client",
       runTimeouts},
      {"incast", "FUSO VI-B.3: many senders to one receiver", runIncast},
      {"bulk", "one download that fills WiFi and LTE", runBulk},
      {"downloads", "downloads of 500 KB one after the other on WiFi and LTE", runDownloads},
      {"mice", "16 KB flows beside an elephant on WiFi and LTE", runMice},
  });
  return kExperiments;
}

}  // namespace braid::sim
