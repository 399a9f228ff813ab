#include <algorithm>
#include <memory>
#include <stdexcept>
#include <vector>

#include "evaluation/models/flows.h"
#include "evaluation/models/traffic.h"
#include "evaluation/racks/rack_experiments.h"
#include "simnet/fabric/hosts.h"
#include "simnet/tcp/connection.h"

namespace braid::sim {

namespace {

// Section VI: 84 servers in four racks below one spine, 1 Gbit/s everywhere.
constexpr size_t kClusterRacks = 4;
constexpr double kClusterRate = 1e9;
constexpr Duration kClusterHop = kTestbedRtt / 8;  // four hops there and four back
constexpr Duration kDeadline = 200ms;              // deadline of small flows
constexpr uint64_t kAskBytes = 100;
constexpr uint64_t kClusterEndless = uint64_t{1} << 40;
/// All connections exist before the first request. They are opened in this time.
constexpr Duration kClusterOpening = 1s;
/// Time after the begin of the last request. Requests incomplete then count with the time that has
/// passed.
constexpr Duration kClusterPatience = 30s;
constexpr uint16_t kFirstClusterPort = 1000;

Topology clusterOf(const RackParams& p) {
  PortOptions port;
  port.rate = kClusterRate;
  port.delay = kClusterHop;
  port.discipline = isDctcp(p) ? Discipline::kDctcp : Discipline::kDropTail;
  port.packets = p.queue;
  port.thresholdPackets = PortQueue::kThreshold;
  LeafSpine tree;
  tree.leaves = kClusterRacks;
  tree.spines = 1;
  tree.hostsPerLeaf = p.hostsPerLeaf;
  tree.access = tree.fabric = tree.host = port;
  tree.host.packets = 0;  // a host's own queue holds what its TCP sends
  return tree.build();
}

class Cluster {
 public:
  explicit Cluster(const RackParams& p)
      : p_(p),
        options_(hostTcp(p)),
        network_(simulation_, clusterOf(p), Random(p.seed).next()),
        hosts_(simulation_, network_) {
    if (p.shim != "off") {
      Random seeds(p.seed);
      for (size_t h = 0; h < hosts_.size(); ++h) hosts_.at(h).addShim(shimOf(p), seeds.next());
    }
    draw();
  }

  Json run() {
    if (p_.background) startBackground();
    for (size_t i = 0; i < flows_.size(); ++i) start(i);
    while (simulation_.now() < flows_.back().begin + kClusterPatience && done_ < flows_.size())
      simulation_.run(10ms);
    return report();
  }

 private:
  /// Draws requests with Poisson arrivals. Their rate is the one at which web search sizes would
  /// load the spine's link to the clients' rack by `load`. Sizes with a larger mean arrive more
  /// slowly, those with a smaller mean at the same rate. With `everyone` each client has the same
  /// rate as without.
  void draw() {
    Sizes sizes = namedSizes(p_.sizes);
    size_t clients = p_.everyone ? hosts_.size() : p_.hostsPerLeaf;
    double bytes = std::max(sizes.mean(p_.most), namedSizes("web_search").mean(p_.most));
    double ofClient = bytes * 8 * static_cast<double>(p_.hostsPerLeaf) / (p_.load * kClusterRate);
    Duration gap = fromSeconds(ofClient / static_cast<double>(clients));
    Random random(p_.seed);
    Time at = simulation_.now() + kClusterOpening;
    for (size_t i = 0; i < clients * p_.requests; ++i, at += exponential(random, gap)) {
      size_t client = random.below(clients);
      size_t server =
          p_.everyone ? otherHost(random, client, hosts_.size()) : elsewhere(random, client);
      flows_.push_back({client, server, sizes.draw(random, p_.most), at});
    }
    if (flows_.size() + hosts_.size() > size_t{UINT16_MAX} - kFirstClusterPort)
      throw std::runtime_error("too many requests for the ports that a host has");
  }
  /// A host of another rack.
  size_t elsewhere(Random& random, size_t host) const {
    size_t outside = hosts_.size() - p_.hostsPerLeaf,
           next = (host / p_.hostsPerLeaf + 1) * p_.hostsPerLeaf;
    return (next + random.below(outside)) % hosts_.size();
  }
  tcp::Connection& connect(size_t client, size_t server) {
    tcp::Connection::Ports ports{port_, port_};
    ++port_;
    connections_.push_back(std::make_unique<tcp::Connection>(simulation_, hosts_.at(client),
                                                             hosts_.at(server), ports, options_));
    return *connections_.back();
  }
  /// Starts an endless flow from each host to a host of another rack, which begins at the end of
  /// kClusterOpening.
  void startBackground() {
    Random random(p_.seed ^ 0x62756c6b);
    for (size_t h = 0; h < hosts_.size(); ++h) {
      tcp::Connection& c = connect(h, elsewhere(random, h));
      simulation_.after(
          kClusterOpening / 2 + Duration(random.below(uint64_t{kClusterOpening / 4 / 1ns})),
          [&c] { c.client().send(kClusterEndless, [](const tcp::Message&) {}); });
    }
  }
  void start(size_t i) {
    auto turn =
        static_cast<int64_t>(i) * (kClusterOpening / 2) / static_cast<int64_t>(flows_.size());
    simulation_.after(turn, [this, i] {
      HostFlow& flow = flows_[i];
      tcp::Connection& c = connect(flow.client, flow.server);
      simulation_.at(flow.begin, [this, &flow, &c] {
        c.client().send(kAskBytes, [this, &flow, &c](const tcp::Message&) {
          c.server().send(flow.bytes,
                          [this, &flow](const tcp::Message& m) { flow.end = m.end, ++done_; });
        });
      });
    });
  }
  Json report() const {
    std::vector<double> all, small;
    for (const HostFlow& f : flows_) {
      all.push_back(toSeconds(std::min(f.end, simulation_.now()) - f.begin));
      if (f.bytes <= kSmallFlow) small.push_back(all.back());
    }
    // Only the responses' connections count here. The counters of ports also include the background
    // flows.
    uint64_t timeouts = 0, reneged = 0, retransmits = 0, probes = 0, dropped = 0, marked = 0,
             packets = 0;
    for (const auto& c : connections_) {
      const tcp::SenderStats& stats = c->server().stats();
      timeouts += stats.timeouts, reneged += stats.reneged, retransmits += stats.retransmitted,
          probes += stats.probes;
    }
    for (const Port& port : network_.ports()) {
      const PortCounters& c = port.counters();
      packets += c.in, dropped += c.dropped, marked += c.marked;
    }
    auto late = std::ranges::count_if(small, [](double t) { return t > toSeconds(kDeadline); });
    return {{"flows", all.size()},
            {"incomplete", all.size() - done_},
            {"mean_all", mean(all)},
            {"p50", percentile(all, 0.5)},
            {"p99", percentile(all, 0.99)},
            {"small", small.size()},
            {"mean_small", mean(small)},
            {"p50_small", percentile(small, 0.5)},
            {"p99_small", percentile(small, 0.99)},
            {"late", late},
            {"timeouts", timeouts},
            {"reneged", reneged},
            {"probes", probes},
            {"retransmits", retransmits},
            {"packets", packets},
            {"dropped", dropped},
            {"marked", marked},
            {"actuators", shimJson(hosts_.shims())},
            {"hash", network_.hash()}};
  }

  RackParams p_;
  tcp::Options options_;
  Simulation simulation_{p_.seed};
  SwitchedNetwork network_;
  NetworkHosts hosts_;
  std::vector<HostFlow> flows_;
  std::vector<std::unique_ptr<tcp::Connection>> connections_;
  size_t done_ = 0;
  uint16_t port_ = kFirstClusterPort;
};

}  // namespace

Json runCluster(const RackParams& p) {
  return Cluster(p).run();
}

}  // namespace braid::sim
