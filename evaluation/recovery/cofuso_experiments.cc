// CoFUSO, section 6.1 (testbed) and 6.2.2 (random loss on many links).

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>

#include "evaluation/models/flows.h"
#include "evaluation/recovery/recovery_experiments.h"
#include "evaluation/recovery/response_trace.h"

namespace braid::sim {

namespace {

/// Section 6.1.1: one response of 29 packets over three subflows with windows of 10 packets, so
/// that the windows have room for one packet of proactive recovery.
constexpr size_t kTargetedPackets = 29;
constexpr size_t kTargetedSubflows = 3;
/// Bytes that each packet leaves free in its datagram, because a parity is slightly longer than the
/// packets it protects.
constexpr size_t kRoomForParity = 24;
/// Datagrams smaller than this carry no data of the response.
constexpr size_t kFullDatagram = 1000;
/// Pause after the start, in which everything is acknowledged and the pacers fill up.
constexpr Duration kIdle = 1s;

/// Replaces the sizes of Baidu's responses, which are not public (fig. 3 is missing from the copy
/// of the paper that we used). According to section 3.3, 78 % of the responses left room for at
/// most 4 packets in the windows, so most have 26 packets or more. Of the public distributions this
/// one comes closest.
constexpr const char* kSizes = "web_search";
constexpr uint64_t kLargest = 100 * 1000;

/// The papers compare TCPs, so cold tunnels use their controller. The warm tunnel is not in the
/// papers and uses the product's default.
std::string controllerOf(const Params& params) {
  return params.warm ? TunnelOptions{}.controller : "newreno";
}

/// The position of a data packet on its path: its number among all datagrams since the request,
/// counted from 1.
struct Place {
  size_t path;
  uint64_t number;
};

class Targeted {
 public:
  explicit Targeted(const Params& params) : params_(params) {
    Run dry = run(std::nullopt, params.seed);
    if (dry.data.size() < kTargetedPackets) throw std::runtime_error("the response is too short");
    dry.data.resize(kTargetedPackets);  // the packets after these are protection
    order_ = dry.data;
    worst_ = dry.worst;
    lossFree_ = dry.result.seconds;
  }

  struct Run {
    FlowResult result;
    std::vector<Place> data;  ///< in the order of sending
    size_t worst =
        0;  ///< the path with the longest RTT by the sender's estimate; of equal ones the first
    uint64_t hash = 0;
  };
  /// Runs one flow and loses the packet at `drop`.
  Run run(std::optional<Place> drop, uint64_t seed) const {
    Connection c(seed, tunnelOptions(params_, "newreno"));
    LinkOptions link{.rateBitsPerSecond = Testbed::kRate,
                     .delay = Testbed::kRtt / 2,
                     .queueBytes = Testbed::kQueue};
    for (size_t i = 0; i < kTargetedSubflows; ++i)
      c.network.join(c.pair, "path" + std::to_string(i), link, link);
    World& world = c.network.world;
    c.network.start();
    world.run(kIdle);
    if (drop) {
      world.paths()[drop->path]->changeDown([&](LinkOptions& o) { o.dropPackets = {drop->number}; },
                                            world.now());
    }
    Run run;
    std::vector<SubflowStatus> known = c.pair.server->status().peers.at(0).subflows;
    for (size_t i = 1; i < known.size(); ++i) {
      if (known[i].srtt > known[run.worst].srtt) run.worst = i;
    }
    std::vector<uint64_t> sent(kTargetedSubflows);
    world.onWire = [&](Path& path, bool up, const WireDatagram& wire) {
      if (up) return;
      size_t index = 0;
      while (world.paths()[index].get() != &path) ++index;
      ++sent[index];
      if (wire.bytes.size() >= kFullDatagram) run.data.push_back({index, sent[index]});
    };
    uint16_t mss = segmentSize(*c.pair.server, kRoomForParity);
    run.result = runFlow(c.network, c.pair, 1000, {kTargetedPackets * uint64_t{mss}, mss}, kIdle);
    run.hash = world.hash();
    return run;
  }
  /// The data packets of a loss-free run, in order.
  const std::vector<Place>& order() const { return order_; }
  /// The path that is protected first. Without earlier losses this is the slowest one.
  size_t worst() const { return worst_; }
  double lossFree() const { return lossFree_; }
  /// The time unit of the results: the RTT plus the serialisation time of the response on one link.
  static double unit() {
    return toSeconds(Testbed::kRtt) +
           static_cast<double>(kTargetedPackets) * 1500 * 8 / Testbed::kRate;
  }

 private:
  const Params& params_;
  std::vector<Place> order_;
  size_t worst_ = 0;
  double lossFree_ = 0;
};

}  // namespace

// Drops each packet of the subflow that is worst by the papers' rules, one per run. Without earlier
// losses this is the slowest subflow.
Json runTargeted(const Params& params) {
  Targeted targeted(params);
  Figures figures;
  Json each = Json::array();
  for (const Place& place : targeted.order()) {
    if (place.path != targeted.worst()) continue;
    Targeted::Run run = targeted.run(place, params.seed);
    figures.add(run.result);
    figures.addHash(run.hash);
    each.push_back(run.result.seconds / Targeted::unit());
  }
  Json j = figures.json();
  j["unit_s"] = Targeted::unit();
  j["loss_free"] = targeted.lossFree() / Targeted::unit();
  j["fct_by_packet"] = each;
  return j;
}

Json runTargetedRandom(const Params& params) {
  Targeted targeted(params);
  Figures figures;
  Random random(params.seed);
  size_t count = params.flows ? params.flows : 500;
  size_t fast = 0;
  for (size_t i = 0; i < count; ++i) {
    const Place& place = targeted.order()[random.below(targeted.order().size())];
    Targeted::Run run = targeted.run(place, params.seed);
    figures.add(run.result);
    figures.addHash(run.hash);
    fast += run.result.seconds <= 1.25 * Targeted::unit();
  }
  Json j = figures.json();
  j["unit_s"] = Targeted::unit();
  j["loss_free"] = targeted.lossFree() / Targeted::unit();
  j["share_within_1.25"] = static_cast<double>(fast) / static_cast<double>(count);
  return j;
}

// Section 6.1.2.
Json runResponses(const Params& params) {
  FlowSizes sizes(params, kSizes, kLargest);
  TunnelOptions options = tunnelOptions(params, controllerOf(params));
  Loss loss{params.loss.value_or(0.02), params.burst.value_or(1)};
  return runFlows(params, sizes, params.flows ? params.flows : 3000,
                  [&](uint64_t seed) { return std::make_unique<Testbed>(seed, options, loss); })
      .json();
}

// Figs. 4 and 5, from the traces of the same flows.
Json runTracedResponses(const Params& params) {
  FlowSizes sizes(params, kSizes, kLargest);
  TunnelOptions options = tunnelOptions(params, "newreno");
  Loss loss{params.loss.value_or(0.02), params.burst.value_or(1)};
  Random seeds(params.seed);
  Figures figures;
  std::vector<double> hits;
  std::array<std::vector<double>, Chances::kAfter.size()> chances;
  for (size_t i = 0; i < (params.flows ? params.flows : 5000); ++i) {
    Testbed testbed(seeds.next(), options, loss);
    testbed.network.start();
    TracedFlow flow =
        traceFlow(testbed, {.bytes = sizes.next(), .mss = segmentSize(*testbed.pair.server)});
    figures.add(flow.result);
    figures.addHash(testbed.network.world.hash());
    if (flow.firstHit) hits.push_back(static_cast<double>(*flow.firstHit));
    for (size_t c = 0; c < chances.size(); ++c)
      chances[c].push_back(static_cast<double>(flow.chances.count[c]));
  }
  auto withinFour = [](const std::vector<double>& values) {
    auto few = static_cast<double>(std::ranges::count_if(values, [](double v) { return v <= 4; }));
    return values.empty() ? 0 : few / static_cast<double>(values.size());
  };
  Json j = figures.json();
  j["hits"] = {{"flows", hits.size()},
               {"within_4", withinFour(hits)},
               {"p50", percentile(hits, 0.5)},
               {"p90", percentile(hits, 0.9)}};
  for (size_t c = 0; c < chances.size(); ++c) {
    j["chances"]["after_" + std::to_string(Chances::kAfter[c] / 1ms) + "_ms"] = {
        {"within_4", withinFour(chances[c])}, {"p50", percentile(chances[c], 0.5)}};
  }
  return j;
}

Json runRouters(const Params& params) {
  FlowSizes sizes(params, kSizes, kLargest);
  TunnelOptions options = tunnelOptions(params, controllerOf(params));
  Loss loss{params.loss.value_or(0.15), params.burst.value_or(1)};
  size_t subflows = params.subflows.value_or(5);
  return runFlows(params, sizes, params.flows ? params.flows : 3000,
                  [&](uint64_t seed) {
                    return std::make_unique<Routers>(seed, params.seed, options, subflows, loss);
                  })
      .json();
}

}  // namespace braid::sim
