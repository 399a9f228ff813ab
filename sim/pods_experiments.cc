#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <stdexcept>

#include "sim/experiment.h"
#include "sim/fabric_experiments.h"
#include "sim/flows.h"
#include "sim/message_flow.h"
#include "sim/network.h"
#include "sim/sizes.h"
#include "simnet/fabric/gateways.h"
#include "simnet/fabric/hosts.h"
#include "simnet/tcp/connection.h"
#include "simnet/tcp/rivals.h"

namespace braid::sim {

namespace {

// FUSO section VI-C.
constexpr double kAccessRate = 10e9, kFabricRate = 40e9;
constexpr Duration kHopDelay = 20us;  // RTT 240 us over six hops there and six back
constexpr size_t kPortBytes = 1 << 20;
constexpr size_t kAccessMarks = 300'000;
constexpr Duration kMinRto = 5ms;
constexpr size_t kSubflows = 8;
constexpr uint64_t kLatencySensitive = 100'000;  // bytes, and below
/// Datagrams: 16 of all eight subflows together (section VI-A).
constexpr size_t kWindowOfEach = 2;
constexpr size_t kGatewayBuffers = 8192;
/// Connections are there before the first flow and before anything is lost (section VI-B.1: "long-lived"): opened in
/// this time.
constexpr Duration kOpens = 20ms;
/// Flows that are not complete so long after the last began count with the time so far.
constexpr Duration kWait = 3s;
constexpr uint16_t kPorts = 1000;

constexpr const char* kSchemes[] = {"tcp",  "tlp",  "tcp-ir", "proactive", "repflow",
                                    "none", "fuso", "cofuso", "adaptive"};

bool isTcp(const std::string& scheme) {
  return std::find(kSchemes, kSchemes + 5, scheme) != kSchemes + 5;
}

tcp::Options tcpOptions(const std::string& scheme) {
  tcp::Options o = tcp::recoveryOptions(scheme == "repflow" ? "tcp" : scheme);
  o.ecn = true;
  o.minRto = kMinRto;
  o.minProbe = 0ms;       // the draft's 10 ms would come after the timer
  o.delayedAcks = false;  // as ns-2's sinks
  o.maxAckDelay = 0ms;
  o.content = false;
  return o;
}

Topology podsOf() {
  Pods pods = Pods::fuso();
  pods.access.rate = pods.host.rate = kAccessRate;
  pods.fabric.rate = kFabricRate;
  for (PortOptions* port : {&pods.access, &pods.host, &pods.fabric}) {
    port->delay = kHopDelay;
    port->bytes = kPortBytes;
    port->discipline = Discipline::kDctcp;
  }
  pods.access.thresholdBytes = kAccessMarks;
  pods.fabric.thresholdBytes = 0;  // 1200 KB, more than fits
  pods.host.bytes = 0;
  return pods.build();
}

/// A loss rate of FUSO's fig. 1 without those above 60 %: of 78 links in a hundred 63 lose 1 to 10 %, the others 10 to
/// 60 %; within these the logarithm is uniform, which the figure's shape comes near to.
double lossRate(Random& random) {
  bool low = random.chance(63.0 / 78);
  double from = low ? 0.01 : 0.1, to = low ? 0.1 : 0.6;
  return from * std::pow(to / from, random.uniform());
}

struct PodFlow {
  size_t client = 0, server = 0;
  uint64_t bytes = 0;
  Time begin{};
  Time end = kNever;
  bool byScheme = false;
};

class PodRun {
 public:
  explicit PodRun(const FabricParams& p)
      : p_(p),
        world_(p.seed),
        network_(world_, podsOf(), Random(p.seed).next()),
        hosts_(world_, network_),
        gateways_(world_, network_, kSubflows) {
    if (std::ranges::find(kSchemes, p.scheme) == std::end(kSchemes))
      throw std::runtime_error("no scheme " + p.scheme);
    draw();
    if (!isTcp(p.scheme)) startGateways();
  }

  Json run() {
    Time start = world_.now() + kOpens;
    for (PodFlow& flow : flows_) {
      flow.begin = start + (flow.begin - Time{});
      flow.byScheme && !isTcp(p_.scheme) ? tunnel(flow) : connect(flow);
    }
    world_.run(kOpens);
    for (const tcp::Connection* c : connections_) {
      if (!c->client().established()) throw std::runtime_error("a connection does not come up");
    }
    for (const auto& [cable, rate] : lossyCables(network_.topology(), p_.lossyShare, p_.seed)) {
      LinkOptions losses;
      losses.loss = rate;
      network_.ports()[cable].setLosses(losses);
    }
    Time last = flows_.empty() ? start : flows_.back().begin;
    world_.runUntil([&] { return done_ == flows_.size(); }, last - world_.now() + kWait);
    requireSound(world_);
    return report();
  }

 private:
  void draw() {
    Sizes sizes = namedSizes(p_.sizes);
    Random random(p_.seed);
    size_t hosts = network_.hosts();
    Duration gap =
        fromSeconds(sizes.mean(p_.most) * 8 / (p_.load * static_cast<double>(hosts) * kAccessRate));
    for (Duration at{}; at < fromSeconds(p_.time / 1000); at += exponential(random, gap)) {
      size_t client = random.below(hosts);
      size_t server = (client + 1 + random.below(hosts - 1)) % hosts;
      uint64_t bytes = sizes.draw(random, p_.most);
      flows_.push_back({client, server, bytes, Time{} + at, kNever, bytes <= kLatencySensitive});
    }
  }
  void startGateways() {
    Params params;
    params.policy = p_.scheme;
    params.minRto = toMilliseconds(kMinRto);
    TunnelOptions options = tunnelOptions(params, "newreno", kWindowOfEach);
    for (size_t h = 0; h < network_.hosts(); ++h) gateways_.add(options).poolLimit = kGatewayBuffers;
    std::vector<std::pair<size_t, size_t>> pairs;
    for (const PodFlow& f : flows_) {
      if (f.byScheme) pairs.emplace_back(std::minmax(f.client, f.server));
    }
    std::ranges::sort(pairs);
    pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
    for (auto [a, b] : pairs) gateways_.pair(a, b);
    gateways_.start();
  }
  uint16_t nextPort() {
    if (port_ == UINT16_MAX) port_ = kPorts;
    return port_++;
  }
  void finish(PodFlow& flow) {
    if (flow.end != kNever) return;
    flow.end = world_.now();
    ++done_;
  }
  void tunnel(PodFlow& flow) {
    world_.at(flow.begin, [this, &flow, port = nextPort()] {
      Node& server = gateways_.at(flow.server);
      MessageOptions message{.bytes = flow.bytes, .mss = segmentSize(server)};
      auto& run = world_.add<MessageFlow>(gateways_.at(flow.client), server, port, message);
      run.onDone = [this, &flow] { finish(flow); };
    });
  }
  // The request is small and the response counts: the server's side sends.
  void connect(PodFlow& flow) {
    tcp::Options options = tcpOptions(flow.byScheme ? p_.scheme : "tcp");
    size_t copies = flow.byScheme && p_.scheme == "repflow" ? 2 : 1;
    for (size_t i = 0; i < copies; ++i) {
      uint16_t port = nextPort();
      tcp::Connection::Ports ports{port, port};
      auto& connection =
          world_.add<tcp::Connection>(hosts_.at(flow.client), hosts_.at(flow.server), ports, options);
      world_.at(flow.begin, [this, &flow, &connection] {
        connection.client().send(kRequest, [this, &flow, &connection](const tcp::Message&) {
          connection.server().send(flow.bytes, [this, &flow](const tcp::Message&) { finish(flow); });
        });
      });
      connections_.push_back(&connection);
    }
  }
  Json report() const {
    std::vector<double> small, large, medium;
    uint64_t incomplete = 0;
    for (const PodFlow& f : flows_) {
      double seconds = toSeconds((f.end == kNever ? world_.now() : f.end) - f.begin);
      incomplete += f.end == kNever;
      (f.bytes <= kLatencySensitive ? small : f.bytes <= 10'000'000 ? medium : large).push_back(seconds);
    }
    uint64_t lost = 0, dropped = 0;
    for (const Port& port : network_.ports())
      lost += port.counters().lost, dropped += port.counters().dropped;
    uint64_t timeouts = 0;
    for (const tcp::Connection* c : connections_) timeouts += c->server().stats().timeouts;
    Json j = {{"load", p_.load},
              {"sizes", p_.sizes},
              {"flows", flows_.size()},
              {"incomplete", incomplete},
              {"small", small.size()},
              {"mean_small", mean(small)},
              {"p50_small", percentile(small, 0.5)},
              {"p99_small", percentile(small, 0.99)},
              {"mean_medium", mean(medium)},
              {"mean_large", mean(large)},
              {"tcp_timeouts", timeouts},
              {"lost", lost},
              {"dropped", dropped},
              {"hops", network_.hops()}};
    Counters tunnels;
    for (size_t h = 0; h < gateways_.size(); ++h) tunnels += Counters(gateways_.at(h));
    j["tunnel_timeouts"] = tunnels.timeouts;
    j["hash"] = network_.hash();
    return j;
  }

  static constexpr uint64_t kRequest = 100;
  FabricParams p_;
  World world_;
  SwitchedNetwork network_;
  NetworkHosts hosts_;
  FabricGateways gateways_;
  std::vector<PodFlow> flows_;
  std::vector<const tcp::Connection*> connections_;
  size_t done_ = 0;
  uint16_t port_ = kPorts;
};

}  // namespace

std::vector<std::pair<size_t, double>> lossyCables(const Topology& topology, double share, uint64_t seed) {
  Random random(seed ^ 0xf0f0);
  const std::vector<Topology::Cable>& cables = topology.cables();
  auto count = static_cast<size_t>(std::lround(share * static_cast<double>(cables.size()) / 2));
  std::vector<bool> chosen(cables.size());
  std::vector<std::pair<size_t, double>> lossy;
  while (count > 0) {
    double place = random.uniform();
    const char* layer = place < 0.22 ? "access" : place < 0.46 ? "aggregation" : "core";
    std::vector<size_t> left;  // one direction of each that is not lossy yet; the other stands beside it
    for (size_t c = 0; c < cables.size(); c += 2) {
      if (cables[c].layer == layer && !chosen[c]) left.push_back(c);
    }
    if (left.empty()) continue;
    size_t cable = left[random.below(left.size())];
    double rate = lossRate(random);
    chosen[cable] = true;
    lossy.emplace_back(cable, rate);
    lossy.emplace_back(cable + 1, rate);
    --count;
  }
  return lossy;
}

std::span<const char* const> podSchemes() {
  return kSchemes;
}

Json runPods(const FabricParams& p) {
  return PodRun(p).run();
}

}  // namespace braid::sim
