// A path without a foreign queue, while the clocks of its ends differ, jump and are slewed.

#include <algorithm>
#include <functional>
#include <vector>

#include "evaluation/models/raw_flows.h"
#include "evaluation/rate/rate_experiments.h"
#include "evaluation/rate/wan_network.h"

namespace braid::sim {

namespace {

/// What happens to the clocks in a run.
struct ClockCase {
  const char* name;
  double clientSlope = 0, serverSlope = 0;  ///< faster than the world's clock by this fraction
  Duration clientJump{}, serverJump{};      ///< once
};
constexpr ClockCase kClockCases[] = {
    {"none"},
    {"client fast", 500e-6},
    {"server fast", 0, 500e-6},
    {"client jumps 4 ms", 0, 0, 4ms},
    {"client jumps 15 ms", 0, 0, 15ms},
    {"client jumps 100 ms", 0, 0, 100ms},
    {"server jumps 4 ms", 0, 0, 0s, 4ms},
    {"server jumps 15 ms", 0, 0, 0s, 15ms},
    {"server jumps 100 ms", 0, 0, 0s, 100ms},
};
constexpr Duration kBeforeClocks = 12s, kStepOfClocks = 10ms;
/// A window counts as lowered when its mean of a second is below this part of the mean without such
/// an event.
constexpr double kLoweredPart = 0.8;

/// Mean windows of the seconds after the event, bytes.
std::vector<double> windowsOf(const RateParams& params, const ClockCase& clocks) {
  LinkOptions link{.rateBitsPerSecond = 20e6, .delay = 20ms};
  link.delay += std::chrono::microseconds(Random(params.seed).below(1000));
  WanTunnel tunnel(params, wanOptions(params, params.controller, "none"), {{"path", link, link}});
  tunnel.start();
  World& world = tunnel.world();
  saturate(world, tunnel.pair);
  auto tick = [&] {
    world.run(kStepOfClocks);
    double step = toSeconds(kStepOfClocks);
    if (clocks.clientSlope > 0)
      tunnel.pair.client->jumpClock(fromSeconds(step * clocks.clientSlope));
    if (clocks.serverSlope > 0)
      tunnel.pair.server->jumpClock(fromSeconds(step * clocks.serverSlope));
  };
  for (Duration t{}; t < kBeforeClocks; t += kStepOfClocks) tick();
  if (clocks.clientJump > 0s) tunnel.pair.client->jumpClock(clocks.clientJump);
  if (clocks.serverJump > 0s) tunnel.pair.server->jumpClock(clocks.serverJump);
  std::vector<double> means;
  auto seconds = static_cast<size_t>(params.wan.seconds.value_or(20));
  constexpr int kTicks = 1s / kStepOfClocks;
  for (size_t second = 0; second < seconds; ++second) {
    double sum = 0;
    for (int i = 0; i < kTicks; ++i) {
      tick();
      sum += static_cast<double>(tunnel.pair.server->status().peers.at(0).subflows.at(0).window);
    }
    means.push_back(sum / kTicks);
  }
  requireSound(world);
  return means;
}

}  // namespace

Json runClocks(const RateParams& params) {
  double usual = mean(windowsOf(params, kClockCases[0]));
  Json cases;
  uint64_t lowered = 0;
  for (const ClockCase& clocks : kClockCases) {
    std::vector<double> windows = windowsOf(params, clocks);
    auto low = [&](double window) { return window < kLoweredPart * usual; };
    auto count = static_cast<uint64_t>(std::ranges::count_if(windows, low));
    cases[clocks.name] = {{"lowered", count},
                          {"least", *std::ranges::min_element(windows) / usual}};
    lowered += count;
  }
  return {{"lowered", lowered}, {"window", usual}, {"cases", cases}};
}

}  // namespace braid::sim
