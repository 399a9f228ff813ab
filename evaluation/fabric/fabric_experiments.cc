#include "evaluation/fabric/fabric_experiments.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <functional>
#include <map>
#include <numeric>
#include <utility>

#include "evaluation/fabric/fat_tree.h"
#include "evaluation/models/flows.h"
#include "evaluation/models/network.h"
#include "evaluation/models/raw_flows.h"
#include "evaluation/models/traffic.h"

namespace braid::sim {

namespace {

/// CPU time that this program has used, seconds.
double processorSeconds() {
  timespec t{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) / 1e9;
}

constexpr uint16_t kLongPort = 1000;

/// The use of a layer's ports during the measurement.
struct LayerUse {
  std::vector<double> use;  // share of the rate, of each port
  size_t mostWaiting = 0;
  uint64_t dropped = 0, marked = 0;
};

class Layers {
 public:
  explicit Layers(SwitchedNetwork& network) : network_(network), began_(0) {}
  void begin(Time now) {
    began_ = toSeconds(now.time_since_epoch());
    before_.clear();
    for (Port& port : network_.ports()) before_.push_back(port.counters(now));
  }
  Json json(Time now) {
    std::map<std::string, LayerUse> layers;
    double seconds = toSeconds(now.time_since_epoch()) - began_;
    for (size_t i = 0; i < before_.size(); ++i) {
      Port& port = network_.ports()[i];
      LayerUse& layer = layers[network_.topology().cables()[i].layer];
      const PortCounters& c = port.counters(now);
      layer.use.push_back(static_cast<double>(c.sentBytes - before_[i].sentBytes) * 8 /
                          port.options().rate / seconds);
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
  SwitchedNetwork& network_;
  double began_;
  std::vector<PortCounters> before_;
};

/// Endless flows through the tunnels.
class Background {
 public:
  Background(FatTree& tree, size_t ahead) : tree_(tree), ahead_(ahead), layers_(tree.network) {}
  void add(size_t from, size_t to) { ways_.emplace_back(from, to); }
  /// Starts the tunnels, and the flows when these are up.
  void start() {
    tree_.gateways.start(ways_);
    for (auto [from, to] : ways_) {
      Node& server = tree_.gateways.at(from);
      mss_ = segmentSize(server);
      flows_.push_back(
          &tree_.world.add<Saturation>(tree_.gateways.at(to), server, port(from), mss_, ahead_));
    }
  }
  /// Runs for `time` and measures the goodput of the long flows.
  void measure(Duration time) {
    requireSound(tree_.world);
    time_ = toSeconds(time);
    std::vector<uint64_t> before;
    for (const Saturation* flow : flows_) before.push_back(flow->received());
    layers_.begin(tree_.world.now());
    hops_ = tree_.network.hops();
    processor_ = processorSeconds();
    tree_.world.run(time);
    processor_ = processorSeconds() - processor_;
    hops_ = tree_.network.hops() - hops_;
    requireSound(tree_.world);
    use_ = layers_.json(tree_.world.now());
    for (size_t i = 0; i < flows_.size(); ++i)
      bytes_.push_back(static_cast<double>(flows_[i]->received() - before[i]));
  }
  Json json() const {
    std::vector<double> goodput;
    double packets = 0;
    for (double bytes : bytes_) goodput.push_back(bytes * 8 / time_ / 1e6), packets += bytes / mss_;
    Json j = {{"hosts", tree_.network.hosts()},
              {"goodput_mbps", mean(goodput)},
              {"goodput_p10_mbps", percentile(goodput, 0.1)},
              {"jain", jain(goodput)},
              {"layers", use_},
              {"data_packets", packets},
              {"hops", hops_},
              {"hash", tree_.world.hash()}};
    if (tree_.params.processor) {
      j["cpu_seconds"] = processor_;
      j["packets_per_cpu_second"] = packets / processor_;
    }
    return j;
  }

 private:
  static uint16_t port(size_t from) { return static_cast<uint16_t>(kLongPort + from); }
  FatTree& tree_;
  size_t ahead_;
  Layers layers_;
  std::vector<std::pair<size_t, size_t>> ways_;
  std::vector<const Saturation*> flows_;
  std::vector<double> bytes_;
  uint16_t mss_ = 1;
  uint64_t hops_ = 0;
  double processor_ = 0, time_ = 1;
  Json use_;
};

}  // namespace

Json runPermutation(const FabricParams& p) {
  FatTree tree(p);
  Random random(p.seed);
  std::vector<size_t> to = derangement(tree.network.hosts(), random);
  std::vector<size_t> sources(to.size());
  std::iota(sources.begin(), sources.end(), size_t{0});
  for (size_t i = sources.size(); i > 1; --i) std::swap(sources[i - 1], sources[random.below(i)]);
  auto longOnes = static_cast<size_t>(p.longShare * static_cast<double>(sources.size()));
  Background background(tree, p.ahead);
  for (size_t i = 0; i < longOnes; ++i) background.add(sources[i], to[sources[i]]);
  background.start();
  tree.world.run(fromSeconds(p.warmUp / 1000));
  // Each of the other hosts has Poisson arrivals of short flows to its one receiver.
  constexpr double kRate = 256;
  constexpr uint64_t kLeast = 1 << 10, kMost = 1 << 20;
  ShortFlows shorts(tree);
  for (size_t i = longOnes; i < sources.size(); ++i) {
    for (Duration at = exponential(random, fromSeconds(1 / kRate)); at < fromSeconds(p.time / 1000);
         at += exponential(random, fromSeconds(1 / kRate)))
      shorts.add(sources[i], to[sources[i]], kLeast + random.below(kMost - kLeast + 1), at);
  }
  background.measure(fromSeconds(p.time / 1000));
  shorts.finish();
  Json j = background.json();
  if (shorts.size() > 0) j["short"] = timesJson(shorts.times(), shorts.incomplete());
  return j;
}

// A fixed number of jobs run in parallel. When one is complete, the next begins.
Json runJobs(const FabricParams& p) {
  constexpr size_t kJobs = 8, kServers = 10;
  constexpr uint64_t kRequest = 2 << 10, kBlock = 64 << 10;
  FatTree tree(p);
  Random random(p.seed);
  size_t hosts = tree.network.hosts();
  Background background(tree, p.ahead);
  for (size_t h = 0; h < hosts; ++h) background.add(h, (h + 1 + random.below(hosts - 1)) % hosts);
  background.start();
  tree.world.run(fromSeconds(p.warmUp / 1000));
  struct Job {
    size_t missing = 0;
    Time begin{};
  };
  std::vector<Job> jobs(kJobs);
  std::vector<double> times;
  Time end = tree.world.now() + fromSeconds(p.time / 1000);
  std::function<void(size_t)> begin = [&](size_t i) {
    Job& job = jobs[i];
    if (tree.world.now() >= end) return;
    size_t client = random.below(hosts);
    job = {kServers, tree.world.now()};
    for (size_t s = 0; s < kServers; ++s) {
      size_t server = (client + 1 + random.below(hosts - 1)) % hosts;
      tree.request(client, server, kRequest, kBlock, [&, i] {
        if (--jobs[i].missing > 0) return;
        times.push_back(toSeconds(tree.world.now() - jobs[i].begin));
        begin(i);
      });
    }
  };
  for (size_t i = 0; i < kJobs; ++i) begin(i);
  background.measure(fromSeconds(p.time / 1000));
  size_t open = 0;
  for (Time patience = end + kFatTreePatience; tree.world.now() < patience; tree.world.run(1ms)) {
    open = static_cast<size_t>(
        std::ranges::count_if(jobs, [](const Job& job) { return job.missing > 0; }));
    if (open == 0) break;
  }
  for (const Job& job : jobs) {
    if (job.missing > 0) times.push_back(toSeconds(tree.world.now() - job.begin));
  }
  Json j = background.json();
  j["jobs"] = timesJson(times, open);
  return j;
}

std::span<const FabricExperiment> fabricExperiments() {
  static constexpr auto kExperiments = std::to_array<FabricExperiment>({
      {"permutation", "AMP 5.3: each host of a fat tree sends to one other", runPermutation,
       &FabricParams::controller},
      {"jobs", "AMP 5.3: incast jobs of DCTCP beside a long flow of each host", runJobs,
       &FabricParams::controller},
      {"mining", "AMP 5.3: data mining between the hosts of a fat tree, short flows by DCTCP",
       runMining, &FabricParams::controller},
      {"pods", "FUSO VI-C: flows between 64 hosts, some cables lose packets", runPods,
       &FabricParams::scheme},
      {"together", "TCP between 64 hosts with parts of Braid or all of it", runTogether,
       &FabricParams::scheme},
      {"lossy-links",
       "FUSO II-A: loss rates and places of a data centre's lossy links, as pods has them",
       runLossyLinks, &FabricParams::scheme},
      {"two-racks", "FUSO VI-B.2: flows between two racks, one of three paths loses packets",
       runTwoRacks, &FabricParams::scheme},
      {"mesh", "CoFUSO 6.2.3: flows of ten hosts at once over a mesh with lossy links", runMesh,
       &FabricParams::scheme},
  });
  return kExperiments;
}

}  // namespace braid::sim
