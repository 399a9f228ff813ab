#include "sim/fabric_experiments.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <map>
#include <numeric>

#include "sim/experiment.h"
#include "sim/network.h"
#include "sim/saturation.h"
#include "simnet/fabric/gateways.h"

namespace braid::sim {

namespace {

constexpr size_t kBuffers = 8192;  // of a gateway

/// Seconds of the processor that this program has used.
double processorSeconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

PortOptions portOf(const FabricParams& p) {
  PortOptions port;
  port.rate = p.rate;
  port.delay = fromSeconds(p.delay / 1e6);
  port.discipline = Discipline::kDctcp;
  port.packets = p.queue;
  port.thresholdPackets = p.threshold;
  return port;
}

/// AMP's fat tree: every port alike, but for those of the hosts themselves, which have room for what they send.
Topology fatTree(const FabricParams& p) {
  Pods pods = Pods::fatTree(p.k);
  pods.access = pods.fabric = pods.host = portOf(p);
  pods.host.packets = 0;
  return pods.build();
}

TunnelOptions optionsOf(const FabricParams& p) {
  Params params;
  params.policy = p.policy;
  params.minRto = p.minRto;
  return tunnelOptions(params, p.controller, p.initialWindow);
}

/// A permutation without a fixed point: to whom each host sends.
std::vector<size_t> derangement(size_t n, Random& random) {
  std::vector<size_t> to(n);
  std::iota(to.begin(), to.end(), size_t{0});
  // Sattolo: one cycle through all.
  for (size_t i = n; i-- > 1;) std::swap(to[i], to[random.below(i)]);
  return to;
}

/// A fat tree whose hosts are gateways.
struct FatTree {
  explicit FatTree(const FabricParams& p)
      : world(p.seed), fabric(world, fatTree(p), Random(p.seed).next()), gateways(world, fabric, p.subflows) {
    for (size_t h = 0; h < fabric.hosts(); ++h) gateways.add(optionsOf(p)).poolLimit = kBuffers;
  }

  World world;
  SwitchedNetwork fabric;
  FabricGateways gateways;
};

/// What the ports of a layer did since `before`.
struct LayerUse {
  std::vector<double> use;  // share of the rate, of each port
  size_t mostWaiting = 0;
  uint64_t dropped = 0, marked = 0;
};

class Layers {
 public:
  explicit Layers(SwitchedNetwork& fabric) : fabric_(fabric), began_(0) {}
  void begin(Time now) {
    began_ = toSeconds(now.time_since_epoch());
    before_.clear();
    for (Port& port : fabric_.ports()) before_.push_back((port.waiting(now), port.counters()));
  }
  Json json(Time now) {
    std::map<std::string, LayerUse> layers;
    double seconds = toSeconds(now.time_since_epoch()) - began_;
    for (size_t i = 0; i < before_.size(); ++i) {
      Port& port = fabric_.ports()[i];
      port.waiting(now);
      LayerUse& layer = layers[fabric_.topology().cables()[i].layer];
      const PortCounters& c = port.counters();
      layer.use.push_back(static_cast<double>(c.sentBytes - before_[i].sentBytes) * 8 / port.options().rate /
                          seconds);
      layer.dropped += c.dropped - before_[i].dropped;
      layer.marked += c.marked - before_[i].marked;
      layer.mostWaiting = std::max(layer.mostWaiting, c.mostWaiting);
    }
    Json j;
    for (const auto& [name, layer] : layers) {
      j[name] = {{"use_mean", mean(layer.use)},
                 {"use_p10", percentile(layer.use, 0.1)},
                 {"use_p90", percentile(layer.use, 0.9)},
                 {"queue_max", layer.mostWaiting},
                 {"dropped", layer.dropped},
                 {"marked", layer.marked}};
    }
    return j;
  }

 private:
  SwitchedNetwork& fabric_;
  double began_;
  std::vector<PortCounters> before_;
};

}  // namespace

Json runPermutation(const FabricParams& p) {
  constexpr uint16_t kPort = 1000;
  FatTree tree(p);
  Random random(p.seed);
  std::vector<size_t> to = derangement(tree.fabric.hosts(), random);
  for (size_t h = 0; h < to.size(); ++h) tree.gateways.pair(to[h], h);
  tree.gateways.start();
  std::vector<const Saturation*> flows;
  for (size_t h = 0; h < to.size(); ++h) {
    Node& server = tree.gateways.at(h);
    flows.push_back(&tree.world.add<Saturation>(tree.gateways.at(to[h]), server, kPort, segmentSize(server), p.ahead));
  }
  tree.world.run(fromSeconds(p.warmUp / 1000));
  requireSound(tree.world);
  std::vector<uint64_t> before;
  for (const Saturation* flow : flows) before.push_back(flow->received());
  Layers layers(tree.fabric);
  layers.begin(tree.world.now());
  uint64_t hops = tree.fabric.hops();
  double cpu = processorSeconds();
  tree.world.run(fromSeconds(p.time / 1000));
  requireSound(tree.world);
  cpu = processorSeconds() - cpu;
  std::vector<double> goodput;
  double bytes = 0;
  for (size_t i = 0; i < flows.size(); ++i) {
    auto got = static_cast<double>(flows[i]->received() - before[i]);
    goodput.push_back(got * 8 / (p.time / 1000) / 1e6);
    bytes += got;
  }
  double packets = bytes / segmentSize(tree.gateways.at(0));
  return {{"hosts", tree.fabric.hosts()},
          {"goodput_mbps", mean(goodput)},
          {"goodput_p10_mbps", percentile(goodput, 0.1)},
          {"jain", jain(goodput)},
          {"layers", layers.json(tree.world.now())},
          {"data_packets", packets},
          {"hops", tree.fabric.hops() - hops},
          {"cpu_seconds", cpu},
          {"packets_per_cpu_second", packets / cpu},
          {"hash", tree.world.hash()}};
}

std::span<const FabricExperiment> fabricExperiments() {
  static constexpr auto kExperiments = std::to_array<FabricExperiment>({
      {"permutation", "AMP 5.2: each host of a fat tree sends to one other", runPermutation,
       &FabricParams::controller},
      {"pods", "FUSO VI-C: flows between 64 hosts, some cables lose packets", runPods, &FabricParams::scheme},
  });
  return kExperiments;
}

}  // namespace braid::sim
