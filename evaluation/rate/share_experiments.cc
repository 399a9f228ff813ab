// Tunnels that meet at one drop-tail queue.

#include <algorithm>
#include <stdexcept>

#include "evaluation/models/raw_flows.h"
#include "evaluation/rate/rate_experiments.h"
#include "evaluation/rate/wan_network.h"

namespace braid::sim {

namespace {

constexpr double kRate = 50e6;
constexpr Duration kRtt = 40ms;
/// No two tunnels have the same RTT: each differs from the nominal RTT by up to kRttSpread, by the
/// seed.
constexpr Duration kRttSpread = 2ms;
/// The tunnel that begins "first" or "last" does so this long before or after the others.
constexpr Duration kLead = 5s;
/// All other begins lie within this time.
constexpr Duration kTogether = 200ms;

/// One shared queue, and a separate line to it for each tunnel.
class Crossing {
 public:
  explicit Crossing(const RateParams& params)
      : network(params.seed, wanOptions(params, params.controller, "none")),
        random_(params.seed),
        params_(params),
        shared_(network.cable(
            {.rateBitsPerSecond = kRate},
            {.rateBitsPerSecond = kRate,
             .queueBytes = static_cast<size_t>(kRate / 8 * toSeconds(kRtt) * params.wan.buffer)})),
        waits_(*shared_.down),
        series_(network.world, params.series) {}

  /// Adds a tunnel. Its download begins `begins` after start().
  void add(const std::string& controller, Duration begins) {
    Network::Pair pair = network.addPair(wanOptions(params_, controller, "none"));
    auto spread = static_cast<uint64_t>(2 * kRttSpread.count());
    Duration rtt = kRtt - kRttSpread + Duration(random_.below(spread));
    network.join(pair, {shared_, network.cable({.delay = rtt / 2})});
    begins_.push_back(begins);
    flows_.push_back(nullptr);
    names_.push_back(controller);
  }
  Duration soon() { return Duration(random_.below(static_cast<uint64_t>(kTogether.count()))); }

  /// Starts all tunnels. The times of add() count from here.
  void start() {
    network.start();
    World& world = network.world;
    for (size_t i = 0; i < flows_.size(); ++i) {
      series_.watch(names_[i] + " " + std::to_string(i), network.pairs[i], world.paths()[i]->name(),
                    *shared_.down);
      world.after(begins_[i],
                  [this, i] { flows_[i] = &saturate(network.world, network.pairs[i]); });
    }
    series_.begin();
  }
  /// Runs for `time` and returns the tunnels' goodputs during it, bit/s.
  std::vector<double> measure(Duration time) {
    World& world = network.world;
    waits_.restart();
    before_ = shared_.down->stats(world.now());
    std::vector<double> rates;
    for (const Saturation* flow : flows_) rates.push_back(-static_cast<double>(flow->received()));
    world.run(time);
    requireSound(world);
    for (const Network::Pair& pair : network.pairs) requireFed(pair);
    for (size_t i = 0; i < rates.size(); ++i)
      rates[i] = (rates[i] + static_cast<double>(flows_[i]->received())) * 8 / toSeconds(time);
    measured_ = time;
    return rates;
  }
  /// Statistics of the shared queue during measure().
  Json linkJson() {
    LinkStats now = shared_.down->stats(network.world.now());
    auto since = [&](LinkCount LinkStats::*count, uint64_t LinkCount::*field) {
      return static_cast<double>(now.*count.*field - before_.*count.*field);
    };
    Json j = waits_.json();
    j["utilisation"] =
        since(&LinkStats::delivered, &LinkCount::bytes) * 8 / kRate / toSeconds(measured_);
    j["loss"] = since(&LinkStats::dropQueue, &LinkCount::packets) /
                since(&LinkStats::in, &LinkCount::packets);
    return j;
  }

  Network network;

 private:
  Random random_;
  const RateParams& params_;
  Cable shared_;
  Waits waits_;
  Series series_;
  std::vector<std::string> names_;
  std::vector<Duration> begins_;
  std::vector<const Saturation*> flows_;
  LinkStats before_;
  Duration measured_{};
};

std::vector<double> inMegabits(std::vector<double> rates) {
  for (double& rate : rates) rate /= 1e6;
  return rates;
}

}  // namespace

Json runCubicShare(const RateParams& params) {
  constexpr Duration kWarmUp = 10s;
  const std::string& order = params.wan.order;
  if (order != "together" && order != "first" && order != "last")
    throw std::runtime_error("order: together, first or last");
  Crossing crossing(params);
  crossing.add(params.controller, crossing.soon() + (order == "last" ? kLead : 0s));
  for (size_t i = 0; i < params.wan.rivals; ++i)
    crossing.add(params.wan.rival, crossing.soon() + (order == "first" ? kLead : 0s));
  crossing.start();
  World& world = crossing.network.world;
  world.run(kTogether + (order == "together" ? 0s : kLead) + kWarmUp);
  std::vector<double> rates = crossing.measure(fromSeconds(params.wan.seconds.value_or(60)));
  double fair = mean(rates);
  return {{"rivals", params.wan.rivals},     {"rival", params.wan.rival},   {"order", order},
          {"buffer_bdp", params.wan.buffer}, {"share", rates[0] / fair},    {"jain", jain(rates)},
          {"mbit", inMegabits(rates)},       {"link", crossing.linkJson()}, {"hash", world.hash()}};
}

Json runConverge(const RateParams& params) {
  constexpr Duration kLater = 10s;
  double seconds = params.wan.seconds.value_or(60);
  Crossing crossing(params);
  crossing.add(params.controller, crossing.soon());
  crossing.add(params.controller, kLater + crossing.soon());
  crossing.start();
  World& world = crossing.network.world;
  world.run(kLater + kTogether + fromSeconds(seconds * 2 / 3));
  std::vector<double> rates = crossing.measure(fromSeconds(seconds / 3));
  return {{"buffer_bdp", params.wan.buffer},
          {"jain", jain(rates)},
          {"mbit", inMegabits(rates)},
          {"link", crossing.linkJson()},
          {"hash", world.hash()}};
}

}  // namespace braid::sim
