#include <algorithm>
#include <stdexcept>
#include <utility>

#include "evaluation/fabric/fabric_experiments.h"
#include "evaluation/models/flows.h"
#include "evaluation/models/network.h"
#include "evaluation/models/params.h"
#include "evaluation/models/traffic.h"
#include "simnet/fabric/gateways.h"
#include "simnet/fabric/hosts.h"
#include "simnet/tcp/connection.h"

namespace braid::sim {

namespace {

// FUSO's tree (section VI-C) with the switches of T-RACKs and AMP: a port holds one bandwidth-delay
// product and marks above DCTCP's threshold for its rate (section 3.5).
constexpr double kTreeAccessRate = 10e9;
constexpr size_t kTreeAccessBytes = 300'000, kTreeFabricBytes = 1'200'000;
constexpr size_t kTreeAccessMarks = 65 * 1500, kTreeFabricMarks = 4 * kTreeAccessMarks;
constexpr uint64_t kSmallResponse = 100'000;  // bytes; responses up to this size are small
constexpr uint64_t kIncastBytes = 64'000;     // bytes of each sender
constexpr Duration kIncastEvery = 5ms;
constexpr size_t kWindowOfEach = 2;  // initial window of a subflow, datagrams
constexpr size_t kNodeBuffers = 16384;
constexpr Duration kSetUp = 50ms;  // time for the setup of connections, before any losses
/// Time after the begin of the last flow. Flows incomplete then count with the time that has
/// passed.
constexpr Duration kWait = 3s;
constexpr uint64_t kQuestionBytes = 100;
constexpr uint16_t kPorts = 1000;

/// A scheme: what is added to the hosts' TCP (the ack shim, a tunnel, or both).
struct Scheme {
  const char* name;
  const char* policy;  // recovery policy; nullptr: no tunnel
  const char* controller;
  bool shim;
};
constexpr Scheme kAlliances[] = {
    {"tcp", nullptr, nullptr, false},      {"shim", nullptr, nullptr, true},
    {"fuso", "fuso", "newreno", false},    {"cofuso", "cofuso", "newreno", false},
    {"dctcp", "none", "dctcp", false},     {"dcm", "none", "dcm", false},
    {"xmp", "none", "xmp", false},         {"amp", "none", "amp", false},
    {"together", "adaptive", "amp", true},
};

const Scheme& schemeOf(const std::string& name) {
  const auto* found =
      std::ranges::find(kAlliances, name, [](const Scheme& s) { return std::string(s.name); });
  if (found == std::end(kAlliances)) throw std::runtime_error("no scheme " + name);
  return *found;
}

Topology tree() {
  Pods pods = fusoTree();
  pods.access.bytes = kTreeAccessBytes;
  pods.access.thresholdBytes = pods.host.thresholdBytes = kTreeAccessMarks;
  pods.fabric.bytes = kTreeFabricBytes;
  pods.fabric.thresholdBytes = kTreeFabricMarks;
  return pods.build();
}

struct Request {
  HostFlow flow;
  tcp::Connection* connection = nullptr;
};

class TogetherRun {
 public:
  explicit TogetherRun(const FabricParams& p)
      : p_(p),
        scheme_(schemeOf(p.scheme)),
        world_(p.seed),
        network_(world_, tree(), Random(p.seed).next()),
        hosts_(world_, network_),
        gateways_(world_, network_, p.subflows) {
    draw();
    if (scheme_.policy) {
      startGateways();
    } else if (scheme_.shim) {
      Random seeds(p.seed);
      for (size_t h = 0; h < hosts_.size(); ++h) hosts_.at(h).addShim({}, seeds.next());
    }
  }

  Json run() {
    Time start = world_.now() + kSetUp;
    for (size_t i = 0; i < requests_.size(); ++i) open(requests_[i], i, start);
    world_.run(kSetUp);
    for (const Request& r : requests_) {
      if (!r.connection || !r.connection->client().established())
        throw std::runtime_error("a connection does not come up");
    }
    for (const auto& [cable, rate] : lossyCables(network_.topology(), p_.lossyShare, p_.seed)) {
      LinkOptions losses;
      losses.loss = rate;
      network_.ports()[cable].setLosses(losses);
    }
    Time last = start;
    for (const Request& r : requests_) last = std::max(last, r.flow.begin);
    world_.runUntil([&] { return done_ == requests_.size(); }, last - world_.now() + kWait);
    requireSound(world_);
    return report();
  }

 private:
  /// Draws Poisson requests between random hosts. In addition, one host after the other asks many
  /// hosts at once.
  void draw() {
    Sizes sizes = namedSizes(p_.sizes);
    Random random(p_.seed);
    size_t hosts = network_.hosts();
    Duration gap = gapOf(sizes, p_.most, p_.load, hosts, kTreeAccessRate);
    Duration end = fromSeconds(p_.time / 1000);
    for (const HostFlow& flow : flowsOfRandomPairs(random, sizes, {hosts, gap, end, p_.most}))
      requests_.push_back({flow});
    if (p_.fanOut == 0) return;
    for (Duration at{}; at < end; at += kIncastEvery) {
      size_t client = random.below(hosts);
      for (size_t i = 0; i < p_.fanOut; ++i)
        requests_.push_back(
            {{client, otherHost(random, client, hosts), kIncastBytes, Time{} + at}});
    }
  }
  void startGateways() {
    Params params;
    params.policy = scheme_.policy;
    TunnelOptions options = tunnelOptions(params, scheme_.controller, kWindowOfEach);
    options.ackShim = scheme_.shim;
    for (size_t h = 0; h < network_.hosts(); ++h) gateways_.add(options).poolLimit = kNodeBuffers;
    std::vector<std::pair<size_t, size_t>> pairs;
    for (const Request& r : requests_) pairs.emplace_back(r.flow.client, r.flow.server);
    gateways_.start(std::move(pairs));
  }
  Station& station(size_t host) {
    if (scheme_.policy) return gateways_.at(host);
    return hosts_.at(host);
  }
  // Connections are set up one after the other, so that their SYNs do not cause an incast. Requests
  // are small; the time of the response is measured.
  void open(Request& request, size_t number, Time start) {
    request.flow.begin = start + (request.flow.begin - Time{});
    tcp::Options options;
    options.control = tcp::Control::kCubic;
    options.content = false;
    if (scheme_.policy)
      options.mss = static_cast<uint16_t>(segmentSize(gateways_.at(request.flow.server)));
    auto port = static_cast<uint16_t>(kPorts + number);
    auto turn =
        static_cast<int64_t>(number) * (kSetUp / 2) / static_cast<int64_t>(requests_.size());
    world_.after(turn, [this, &request, options, port] {
      request.connection =
          &world_.add<tcp::Connection>(station(request.flow.client), station(request.flow.server),
                                       tcp::Connection::Ports{port, port}, options);
    });
    world_.at(request.flow.begin, [this, &request] {
      request.connection->client().send(kQuestionBytes, [this, &request](const tcp::Message&) {
        request.connection->server().send(request.flow.bytes,
                                          [this, &request](const tcp::Message&) {
                                            request.flow.end = world_.now();
                                            ++done_;
                                          });
      });
    });
  }
  Json report() {
    std::vector<double> all, small;
    uint64_t incomplete = 0, timeouts = 0;
    for (const Request& r : requests_) {
      all.push_back(toSeconds((r.flow.end == kNever ? world_.now() : r.flow.end) - r.flow.begin));
      incomplete += r.flow.end == kNever;
      timeouts += r.connection->server().stats().timeouts;
      if (r.flow.bytes <= kSmallResponse) small.push_back(all.back());
    }
    uint64_t lost = 0, dropped = 0, marked = 0;
    for (const Port& port : network_.ports()) {
      lost += port.counters().lost;
      dropped += port.counters().dropped;
      marked += port.counters().marked;
    }
    Json json{{"load", p_.load},
              {"flows", all.size()},
              {"incomplete", incomplete},
              {"mean_all", mean(all)},
              {"p99_all", percentile(all, 0.99)},
              {"small", small.size()},
              {"mean_small", mean(small)},
              {"p50_small", percentile(small, 0.5)},
              {"p99_small", percentile(small, 0.99)},
              {"timeouts", timeouts},
              {"lost", lost},
              {"dropped", dropped},
              {"marked", marked},
              {"hash", network_.hash()}};
    if (p_.times) json["times_small"] = small;
    return json;
  }

  FabricParams p_;
  const Scheme& scheme_;
  World world_;
  SwitchedNetwork network_;
  NetworkHosts hosts_;
  FabricGateways gateways_;
  std::vector<Request> requests_;
  size_t done_ = 0;
};

}  // namespace

std::vector<std::string> togetherSchemes() {
  std::vector<std::string> names;
  for (const Scheme& scheme : kAlliances) names.emplace_back(scheme.name);
  return names;
}

Json runTogether(const FabricParams& p) {
  return TogetherRun(p).run();
}

}  // namespace braid::sim
