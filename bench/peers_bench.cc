// Measures the cost of a packet, a peer and a flow at a concentrator with many peers, which are all
// up. Only the time and memory of the concentrator's core count, not those of the edges' cores,
// which run in the same program.
//
//     carry:   idle edges (keepalives only) ==== 10 ms ==== concentrator
//              busy edge, one flow ============= 10 ms ==== concentrator
//     spread:  edges, many flows each ========== 10 ms ==== concentrator
//     bursts:  as spread; an edge's bursts have the same interval for any number of edges
//     backlog: as spread; each edge is offered twice the traffic that its ceiling allows
//     rest:    only idle edges, each with a keepalive every 100 ms, which is answered
//              (10,000 per second with 1,000 edges)
//     memory:  as spread, measured with the flows and before without them

#include <benchmark/benchmark.h>

#include <map>
#include <memory>
#include <tuple>

#include "bench/hub.h"

namespace braid::sim {
namespace {

constexpr unsigned kWarmUp = 5'000;  // turns until windows and pools have their full size
constexpr unsigned kFewPeers = 10;
constexpr Duration kBurstsApart = 200ms;  // of one edge
constexpr Duration kBacklogApart = 100ms;
constexpr Duration kRestApart = 100ms;        // keepalives of one edge
constexpr uint64_t kBacklogCeiling = 50'000;  // bytes per second

/// A hub and its traffic, made once for all repetitions.
struct Scene {
  Hub hub;
  Trains trains;
  Duration pause{};  ///< time between two steps, in which everything due is handled; zero: none

  double step(bool down) {
    double sum = hub.step(down, trains.next());
    return pause > Duration::zero() ? sum + hub.pass(pause) : sum;
  }
};

Scene& sceneOf(unsigned edges, unsigned busy, unsigned flows, bool down, Duration pause = {},
               uint64_t ceiling = 0) {
  using Key = std::tuple<unsigned, unsigned, unsigned, bool, Duration, uint64_t>;
  static std::map<Key, std::unique_ptr<Scene>> scenes;
  std::unique_ptr<Scene>& scene = scenes[{edges, busy, flows, down, pause, ceiling}];
  if (!scene) {
    scene.reset(new Scene{Hub(edges, Counts::kNothing, ceiling), {edges, busy, flows}, pause});
    unsigned turns = std::max(kWarmUp, scene->trains.round());
    for (unsigned i = 0; i < turns; ++i) scene->step(down);
  }
  return *scene;
}

void run(benchmark::State& state, Scene& scene, bool down) {
  uint64_t before = scene.hub.delivered();
  for ([[maybe_unused]] auto _ : state) state.SetIterationTime(scene.step(down));
  scene.hub.checkPeers();
  auto packets = static_cast<double>(scene.hub.delivered() - before);
  state.counters["ns/packet"] =
      benchmark::Counter(packets * 1e-9, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["delivered"] = packets / static_cast<double>(state.iterations() * kBatch);
}

void carry(benchmark::State& state, bool down) {
  run(state, sceneOf(static_cast<unsigned>(state.range(0)), 1, 1, down), down);
}
BENCHMARK_CAPTURE(carry, down, true)->ArgName("peers")->Arg(1)->Arg(kManyPeers)->UseManualTime();
BENCHMARK_CAPTURE(carry, up, false)->ArgName("peers")->Arg(1)->Arg(kManyPeers)->UseManualTime();

void spread(benchmark::State& state, bool down) {
  auto peers = static_cast<unsigned>(state.range(0));
  run(state, sceneOf(peers, peers, static_cast<unsigned>(state.range(1)), down), down);
}
BENCHMARK_CAPTURE(spread, down, true)
    ->ArgNames({"peers", "flows"})
    ->Args({1, 1})
    ->Args({kManyPeers, kManyFlows})
    ->UseManualTime();
BENCHMARK_CAPTURE(spread, up, false)
    ->ArgNames({"peers", "flows"})
    ->Args({1, 1})
    ->Args({kManyPeers, kManyFlows})
    ->UseManualTime();

/// Each edge sends one burst per 200 ms, each time for its next flow.
void bursts(benchmark::State& state, bool down) {
  auto peers = static_cast<unsigned>(state.range(0));
  Duration apart = kBurstsApart / peers - kTick;
  run(state, sceneOf(peers, peers, static_cast<unsigned>(state.range(1)), down, apart), down);
}
BENCHMARK_CAPTURE(bursts, down, true)
    ->ArgNames({"peers", "flows"})
    ->Args({kFewPeers, kManyFlows})
    ->Args({kManyPeers, kManyFlows})
    ->UseManualTime();
BENCHMARK_CAPTURE(bursts, up, false)
    ->ArgNames({"peers", "flows"})
    ->Args({kFewPeers, kManyFlows})
    ->Args({kManyPeers, kManyFlows})
    ->UseManualTime();

/// Peers with queued data that almost always wait for the pacer of their ceiling.
void backlog(benchmark::State& state) {
  auto peers = static_cast<unsigned>(state.range(0));
  Duration apart = kBacklogApart / peers - kTick;
  run(state, sceneOf(peers, peers, 1, true, apart, kBacklogCeiling), true);
}
BENCHMARK(backlog)->ArgName("peers")->Arg(kFewPeers)->Arg(kManyPeers)->UseManualTime();

/// Only control packets: one keepalive of each edge per 100 ms, and an ACK for each.
void rest(benchmark::State& state) {
  auto peers = static_cast<unsigned>(state.range(0));
  static std::map<unsigned, std::unique_ptr<Hub>> hubs;
  std::unique_ptr<Hub>& hub = hubs[peers];
  if (!hub) hub = std::make_unique<Hub>(peers, Counts::kNothing, 0, kRestApart);
  uint64_t before = hub->received();
  for ([[maybe_unused]] auto _ : state) state.SetIterationTime(hub->pass(kRestApart));
  hub->checkPeers();
  auto packets = static_cast<double>(hub->received() - before);
  state.counters["ns/packet"] =
      benchmark::Counter(packets * 1e-9, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["packets/s"] =
      packets * 1e3 / (static_cast<double>(state.iterations()) * toMilliseconds(kRestApart));
}
BENCHMARK(rest)->ArgName("peers")->Arg(kFewPeers)->Arg(kManyPeers)->UseManualTime();

/// Memory of an idle peer that is up, and of a flow with packets in both directions.
void memory(benchmark::State& state) {
  for ([[maybe_unused]] auto _ : state) {
    Hub hub(kManyPeers, Counts::kMemory);
    auto idle = static_cast<double>(hub.held());
    for (bool down : {true, false}) {
      Trains trains(kManyPeers, kManyPeers, kManyFlows);
      for (unsigned i = 0; i < trains.round(); ++i) hub.step(down, trains.next());
    }
    hub.checkPeers();
    state.counters["bytes/peer"] = idle / kManyPeers;
    state.counters["bytes/flow"] =
        (static_cast<double>(hub.held()) - idle) / (double{kManyPeers} * double{kManyFlows});
  }
}
BENCHMARK(memory)->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace braid::sim

BENCHMARK_MAIN();
