#include "evaluation/rate/rate_experiments.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "evaluation/models/raw_flows.h"
#include "evaluation/models/series.h"

namespace braid::sim {

namespace {

constexpr size_t kFullPacket = 1500;  // bytes of a full IP packet of the tunnel
constexpr Duration kFlowLimit = 30s;
constexpr Duration kQueueSample = 10us;
constexpr Duration kSeriesSample = 50us;  // two round trips

LinkOptions fabricLink(const RateParams& p) {
  constexpr int kHops = 4;  // there and back
  return {.rateBitsPerSecond = p.rate,
          .delay = fromSeconds(p.rtt * 1e-6 / kHops),
          .queueBytes = p.queue * kFullPacket,
          .ecnThresholdBytes = p.threshold * kFullPacket};
}

/// A host's own link. The delays differ by up to 199 ns, so that different seeds give different
/// runs.
LinkOptions accessLink(const RateParams& p, Random& hair) {
  LinkOptions link = fabricLink(p);
  link.delay += Duration(hair.below(200));
  return link;
}

TunnelOptions rateOptions(const RateParams& p, const std::string& controller) {
  TunnelOptions o;
  o.outerMtu = o.maxOuterMtu = kFullPacket;
  o.controller = controller;
  o.amp = p.amp;
  o.liaBeta = p.liaBeta;
  o.initialWindow = p.initialWindow;
  o.recovery = "none";
  o.minRto = fromSeconds(p.minRto / 1000);
  return o;
}

bool isMultipath(const std::string& controller) {
  constexpr std::string_view kMultipath[] = {"amp", "dcm", "xmp", "lia"};
  return std::ranges::find(kMultipath, controller) != std::end(kMultipath);
}

/// Number of times that this pair's server restricted itself to one subflow.
uint64_t suppressions(const Network::Pair& pair) {
  return pair.server->status().peers.at(0).suppressions;
}

double deviation(std::span<const double> values) {
  double m = mean(values), sum = 0;
  for (double v : values) sum += (v - m) * (v - m);
  return values.empty() ? 0 : std::sqrt(sum / static_cast<double>(values.size()));
}

/// Samples the number of packets that wait at a link, every kQueueSample.
class QueueSampler {
 public:
  QueueSampler(World& world, SharedLink& link) : world_(world), link_(link) { look(); }
  QueueSampler(const QueueSampler&) = delete;
  QueueSampler& operator=(const QueueSampler&) = delete;
  const std::vector<double>& packets() const { return packets_; }
  void restart() { packets_.clear(); }

 private:
  void look() {
    packets_.push_back(static_cast<double>(link_.stats(world_.now()).queueBytes) / kFullPacket);
    world_.after(kQueueSample, [this] { look(); });
  }
  World& world_;
  SharedLink& link_;
  std::vector<double> packets_;
};

Json queueJson(const std::vector<double>& packets) {
  return {{"p10", percentile(packets, 0.1)},
          {"median", percentile(packets, 0.5)},
          {"p90", percentile(packets, 0.9)},
          {"max", percentile(packets, 1)}};
}

// ---- fig. 8

struct IncastRound {
  std::vector<double> times;
  size_t incomplete = 0;
  Counters sender;
  uint64_t suppressions = 0, hash = 0;
};

IncastRound incastRound(const RateParams& p, uint64_t seed) {
  constexpr Duration kInterval = 50us;
  RateParams own = p;
  own.seed = seed;
  ManyToOne fabric(own);
  for (size_t i = 0; i < p.senders; ++i) fabric.add(p.controller);
  fabric.network.start();
  World& world = fabric.network.world;
  Series series(world, p.series, kSeriesSample);
  fabric.watch(series);
  series.begin();
  Random jitter(seed);
  std::vector<const MessageFlow*> flows(p.senders);
  Counters before;
  for (const Network::Pair& pair : fabric.network.pairs) before += Counters(*pair.server);
  for (size_t i = 0; i < p.senders; ++i) {
    const Network::Pair& pair = fabric.network.pairs[i];
    MessageOptions message{.bytes = p.bytes, .mss = segmentSize(*pair.server)};
    world.after(static_cast<int>(i) * kInterval + Duration(jitter.below(1000)),
                [&, pair, message, i] {
                  flows[i] = &world.add<MessageFlow>(*pair.client, *pair.server, 1000, message);
                });
  }
  world.runUntil(
      [&] {
        return std::ranges::all_of(flows, [](const MessageFlow* f) { return f && f->done(); });
      },
      kFlowLimit);
  requireSound(world);
  IncastRound round;
  for (const MessageFlow* flow : flows) {
    round.times.push_back(toSeconds(flow->completionTime()));
    round.incomplete += !flow->done();
  }
  for (const Network::Pair& pair : fabric.network.pairs) {
    round.sender += Counters(*pair.server);
    round.suppressions += suppressions(pair);
  }
  round.sender = round.sender - before;
  round.hash = world.hash();
  return round;
}

Json runRateIncast(const RateParams& p) {
  std::vector<double> times;
  Counters sender;
  size_t incomplete = 0;
  uint64_t episodes = 0, hash = 0;
  Random seeds(p.seed);
  RateParams own = p;
  for (size_t i = 0; i < p.rounds; ++i) {
    IncastRound round = incastRound(own, seeds.next());
    own.series.out = nullptr;  // only the first round writes the series
    times.insert(times.end(), round.times.begin(), round.times.end());
    incomplete += round.incomplete;
    sender += round.sender;
    episodes += round.suppressions;
    hash = (hash ^ round.hash) * 0x9e3779b97f4a7c15;
  }
  return {{"senders", p.senders},
          {"flows", times.size()},
          {"mean", mean(times)},
          {"deviation", deviation(times)},
          {"p50", percentile(times, 0.5)},
          {"p99", percentile(times, 0.99)},
          {"max", percentile(times, 1)},
          {"incomplete", incomplete},
          {"sent", sender.sentPackets},
          {"lost", sender.lostPackets},
          {"timeouts", sender.timeouts},
          {"suppressions", episodes},
          {"hash", hash}};
}

// ---- figs. 4, 7, 9, 10

struct LongRun {
  std::vector<double> goodputs;  // bit/s, in the order of the controllers
  std::vector<double> queue;     // packets, not counting the first tenth of the time
  uint64_t suppressions = 0, largest = 0, hash = 0;
  uint64_t lost = 0;
};

/// Runs connections with these controllers, all in parallel.
LongRun longRun(const RateParams& p, const std::vector<std::string>& controllers) {
  ManyToOne fabric(p);
  for (const std::string& name : controllers) fabric.add(name);
  fabric.network.start();
  World& world = fabric.network.world;
  Series series(world, p.series, kSeriesSample);
  fabric.watch(series);
  series.begin();
  std::vector<const Saturation*> flows;
  for (const Network::Pair& pair : fabric.network.pairs) {
    world.run(fabric.startOffset() / static_cast<int>(controllers.size()));
    flows.push_back(
        &world.add<Saturation>(*pair.client, *pair.server, 1000, segmentSize(*pair.server)));
  }
  Duration time = fromSeconds(p.time / 1000);
  QueueSampler queue(world, fabric.bottleneck());
  world.run(time / 10);
  queue.restart();
  world.run(time - time / 10);
  requireSound(world);
  LongRun run;
  run.queue = queue.packets();
  for (const Saturation* flow : flows)
    run.goodputs.push_back(static_cast<double>(flow->received()) * 8 / toSeconds(time));
  for (const Network::Pair& pair : fabric.network.pairs) {
    run.suppressions += suppressions(pair);
    run.largest = std::max(run.largest, suppressions(pair));
    run.lost += Counters(*pair.server).lostPackets;
  }
  run.hash = world.hash();
  return run;
}

Json runSyndrome(const RateParams& p) {
  std::vector<std::string> controllers(p.multipath, p.controller);
  controllers.insert(controllers.end(), p.singles, "dctcp");
  LongRun run = longRun(p, controllers);
  std::span<const double> all(run.goodputs);
  double sum = mean(all) * static_cast<double>(all.size());
  return {{"multipath", p.multipath},
          {"singles", p.singles},
          {"jain", jain(all)},
          {"goodput_gbit", sum / 1e9},
          {"multipath_mbit", mean(all.first(p.multipath)) / 1e6},
          {"single_mbit", mean(all.subspan(p.multipath)) / 1e6},
          {"queue", queueJson(run.queue)},
          {"suppressions", run.suppressions},
          {"lost", run.lost},
          {"hash", run.hash}};
}

Json runSweep(const RateParams& p) {
  LongRun run = longRun(p, std::vector<std::string>(p.senders, p.controller));
  return {{"connections", p.senders},
          {"gamma", p.amp.gamma},
          {"tau", p.amp.tau},
          {"episodes", static_cast<double>(run.suppressions) / static_cast<double>(p.senders)},
          {"episodes_max", run.largest},
          {"jain", jain(run.goodputs)},
          {"queue", queueJson(run.queue)},
          {"hash", run.hash}};
}

// ---- figs. 5, 6, 11

/// S2 sends over an upper and a lower path, S1 only over the upper one and S3 only over the lower
/// one.
struct Shifting {
  Network network;
  Cable upper, lower;
  const RateParams& params;
  Random hair;

  explicit Shifting(const RateParams& p)
      : network(p.seed, rateOptions(p, p.controller)),
        upper(network.cable(fabricLink(p))),
        lower(network.cable(fabricLink(p))),
        params(p),
        hair(p.seed) {}
  Network::Pair add(const std::string& controller, std::initializer_list<Cable> paths) {
    Network::Pair pair = network.addPair(rateOptions(params, controller));
    for (const Cable& path : paths)
      network.join(pair, {path, network.cable(accessLink(params, hair))});
    return pair;
  }
};

/// The window, in packets, of this pair's server on the subflow over the client's uplink `uplink`.
double windowOn(const Network::Pair& pair, const std::string& uplink) {
  return static_cast<double>(serverStatus(pair, subflowOn(pair, uplink)).window) / kFullPacket;
}

Json runShifting(const RateParams& p) {
  constexpr Duration kSample = 20us;
  constexpr double kThere = 0.9;
  Duration phase = fromSeconds(p.time / 1000);
  Shifting fabric(p);
  Network::Pair s2 = fabric.add(p.controller, {fabric.upper, fabric.lower});
  Network::Pair s1 = fabric.add("dctcp", {fabric.upper});
  Network::Pair s3 = fabric.add("dctcp", {fabric.lower});
  fabric.network.start();
  World& world = fabric.network.world;
  auto flow = [&](const Network::Pair& pair) -> Saturation& {
    return world.add<Saturation>(*pair.client, *pair.server, 1000, segmentSize(*pair.server));
  };
  Series series(world, p.series, kSeriesSample);
  series.watch("S2 upper", s2, "path0", *fabric.upper.down);
  series.watch("S2 lower", s2, "path1", *fabric.lower.down);
  series.watch("S1", s1, "path2", *fabric.upper.down);
  series.watch("S3", s3, "path3", *fabric.lower.down);
  series.begin();
  flow(s2);
  world.run(phase);
  Saturation& third = flow(s3);
  world.run(phase);
  third.stop();
  world.run(fromSeconds(p.rtt * 1e-6 * fabric.hair.uniform()));
  flow(s1);
  std::vector<double> up, low;
  for (Duration t{}; t < phase; t += kSample) {
    up.push_back(windowOn(s2, "path0"));
    low.push_back(windowOn(s2, "path1"));
    world.run(kSample);
  }
  requireSound(world);
  // The settled state is the second half of the phase.
  auto settled = [](const std::vector<double>& w) {
    return mean(std::span(w).subspan(w.size() / 2));
  };
  double before = up.front(), upSettled = settled(up), lowSettled = settled(low);
  auto first = [&](auto arrived, const std::vector<double>& w) {
    auto at = std::ranges::find_if(w, arrived);
    return static_cast<double>(at - w.begin()) * toMilliseconds(kSample);
  };
  double gone = first([&](double w) { return w <= before - kThere * (before - upSettled); }, up);
  double taken = first([&](double w) { return w >= kThere * lowSettled; }, low);
  return {{"shift_ms", std::max(gone, taken)},
          {"upper_ms", gone},
          {"lower_ms", taken},
          {"windows_before", {before, low.front()}},
          {"windows_settled", {upSettled, lowSettled}},
          {"hash", world.hash()}};
}

}  // namespace

ManyToOne::ManyToOne(const RateParams& params)
    : network(params.seed, rateOptions(params, params.controller)),
      params_(params),
      hair_(params.seed),
      shared_(network.cable(fabricLink(params))) {}

Network::Pair ManyToOne::add(const std::string& controller) {
  Network::Pair pair = network.addPair(rateOptions(params_, controller));
  Cable access = network.cable(accessLink(params_, hair_));
  size_t count = isMultipath(controller) ? params_.subflows : 1;
  for (size_t i = 0; i < count; ++i) network.join(pair, {shared_, access});
  return pair;
}

void ManyToOne::watch(Series& series) const {
  for (const auto& path : network.world.paths()) {
    for (const Network::Pair& pair : network.pairs) {
      if (path->near().node == pair.client)
        series.watch(path->name(), pair, path->name(), *shared_.down);
    }
  }
}

std::span<const RateExperiment> rateExperiments() {
  static constexpr auto kExperiments = std::to_array<RateExperiment>({
      {"incast", "AMP 3.1 and 5.2, fig. 8: many senders of a short flow to one receiver",
       runRateIncast, "amp"},
      {"syndrome",
       "AMP 3.2 and 5.2, figs. 4, 9, 10: multipath and DCTCP connections at one bottleneck",
       runSyndrome, "amp"},
      {"shifting", "AMP 4.1 and 5.2, figs. 6, 11: a competitor moves from one path to the other",
       runShifting, "amp"},
      {"sweep", "AMP 5.1, fig. 7: how often connections suppress, by gamma and tau", runSweep,
       "amp"},
      {"bulk", "one download over WiFi and LTE that lose at random", runWanBulk},
      {"trace", "one 4G-like path whose capacity changes every second", runTrace},
      {"cubic-share", "one tunnel beside others with cubic at a drop-tail queue", runCubicShare},
      {"converge", "two tunnels of one controller, the second 10 s later", runConverge},
      {"policer", "one path with a token bucket", runPolicer},
      {"shallow", "one path with a small buffer, its start included", runShallow},
      {"two-way", "slow paths that are full in both directions", runTwoWay, "wan"},
      {"interactive", "100-byte exchanges beside a download that fills WiFi and LTE",
       runInteractive},
      {"download", "a download from its start on, over long, bursty or shallow paths", runDownload},
      {"policed", "a download from its start on, over one path with a policer", runPoliced},
  });
  return kExperiments;
}

}  // namespace braid::sim
