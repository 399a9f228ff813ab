#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>

#include "evaluation/fabric/fabric_experiments.h"
#include "evaluation/fabric/scheme_traffic.h"
#include "evaluation/models/flows.h"
#include "evaluation/models/traffic.h"

namespace braid::sim {

namespace {

// FUSO section VI-C.
constexpr double kAccessRate = 10e9, kFabricRate = 40e9;
constexpr Duration kHopDelay = 20us;  // RTT 240 us over six hops there and six back
constexpr size_t kPodPortBytes = 1 << 20;
constexpr size_t kAccessMarks = 300'000;
constexpr size_t kPodSubflows = 8;
constexpr size_t kPodSubflowWindow = 2;  // 16 datagrams of all subflows together (section VI-A)

Topology podsOf() {
  Pods pods = fusoTree();
  for (PortOptions* port : {&pods.access, &pods.fabric}) port->bytes = kPodPortBytes;
  pods.access.thresholdBytes = pods.host.thresholdBytes = kAccessMarks;
  pods.fabric.thresholdBytes = 0;  // 1200 KB, more than fits
  return pods.build();
}

std::vector<HostFlow> podFlows(const FabricParams& p, size_t hosts) {
  Sizes sizes = namedSizes(p.sizes);
  Random random(p.seed);
  Duration gap = gapOf(sizes, p.most, p.load, hosts, kAccessRate);
  return flowsOfRandomPairs(random, sizes, {hosts, gap, fromSeconds(p.time / 1000), p.most});
}

}  // namespace

Pods fusoTree() {
  Pods pods = Pods::fuso();
  pods.access.rate = pods.host.rate = kAccessRate;
  pods.fabric.rate = kFabricRate;
  for (PortOptions* port : {&pods.access, &pods.host, &pods.fabric}) {
    port->delay = kHopDelay;
    port->discipline = Discipline::kDctcp;
  }
  pods.host.bytes = 0;  // a host's own queue holds what it sends
  return pods;
}

double lossRate(Random& random, bool blackHoles) {
  if (blackHoles && random.chance(0.22)) return 1 - 0.4 * random.uniform();
  bool low = random.chance(63.0 / 78);
  double from = low ? 0.01 : 0.1, to = low ? 0.1 : 0.6;
  return from * std::pow(to / from, random.uniform());
}

std::vector<std::pair<size_t, double>> lossyCables(const Topology& topology, double share,
                                                   uint64_t seed) {
  Random random(seed ^ 0xf0f0);
  const std::vector<Topology::Cable>& cables = topology.cables();
  auto count = static_cast<size_t>(std::lround(share * static_cast<double>(cables.size()) / 2));
  std::vector<bool> chosen(cables.size());
  std::vector<std::pair<size_t, double>> lossy;
  while (count > 0) {
    double place = random.uniform();
    const char* layer = place < 0.22 ? "access" : place < 0.46 ? "aggregation" : "core";
    std::vector<size_t>
        left;  // one direction of each cable that is not lossy yet; the other has the next index
    for (size_t c = 0; c < cables.size(); c += 2) {
      if (cables[c].layer == layer && !chosen[c]) left.push_back(c);
    }
    if (left.empty()) continue;
    size_t cable = left[random.below(left.size())];
    double rate = lossRate(random, false);
    chosen[cable] = true;
    lossy.emplace_back(cable, rate);
    lossy.emplace_back(cable + 1, rate);
    --count;
  }
  return lossy;
}

Json runLossyLinks(const FabricParams& p) {
  Topology topology = podsOf();
  Random random(p.seed);
  std::vector<double> rates, low;
  std::map<std::string, size_t> layers{{"access", 0}, {"aggregation", 0}, {"core", 0}};
  size_t links = p.flows.value_or(10'000), high = 0, placed = 0;
  while (rates.size() < links) {
    rates.push_back(lossRate(random, p.blackHoles));
    if (rates.back() <= 0.1) low.push_back(rates.back());
    high += rates.back() > 0.6;
  }
  while (placed < links) {
    std::vector<std::pair<size_t, double>> lossy =
        lossyCables(topology, p.lossyShare, random.next());
    if (lossy.empty()) break;
    for (size_t i = 0; i < lossy.size(); i += 2, ++placed)
      ++layers[topology.cables()[lossy[i].first].layer];
  }
  auto share = [](size_t a, size_t of) {
    return of > 0 ? static_cast<double>(a) / static_cast<double>(of) : 0;
  };
  Json j = {
      {"links", links},        {"mean", mean(rates)},        {"low", share(low.size(), links)},
      {"mean_low", mean(low)}, {"high", share(high, links)}, {"p50", percentile(rates, 0.5)}};
  for (const auto& [layer, count] : layers) j["places"][layer] = share(count, placed);
  j["hash"] = random.next();
  return j;
}

Json runPods(const FabricParams& p) {
  Topology topology = podsOf();
  SchemeTrafficOptions options;
  options.scheme = p.scheme;
  options.seed = p.seed;
  options.subflows = kPodSubflows;
  options.subflowWindow = kPodSubflowWindow;
  options.sensitive = p.all ? UINT64_MAX : SchemeTraffic::kSmall;
  options.lossy = lossyCables(topology, p.lossyShare, p.seed);
  SchemeTraffic traffic(options, topology, podFlows(p, topology.hosts().size()));
  traffic.run();
  Json j = {{"load", p.load}, {"sizes", p.sizes}};
  j.update(traffic.json());
  return j;
}

}  // namespace braid::sim
