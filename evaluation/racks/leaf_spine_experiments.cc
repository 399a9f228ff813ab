#include <algorithm>
#include <memory>
#include <vector>

#include "evaluation/models/flows.h"
#include "evaluation/models/traffic.h"
#include "evaluation/racks/rack_experiments.h"
#include "simnet/fabric/hosts.h"

namespace braid::sim {

namespace {

// Section V-B. The paper does not say the rate of the fabric. With the rate of the hosts and an
// over-subscription of 5, a rack has 20 hosts.
constexpr double kHostRate = 10e9;
constexpr Duration kHop = 50us;
constexpr Duration kRackRtt = 4 * kHop;
constexpr size_t kFull = 1500;
/// K of DCTCP and RED's lower threshold at 10 Gbit/s (DCTCP, section 3.5), packets.
constexpr size_t kMarkAbove = 65;
/// All connections exist before the first flow ("persistent connections"). They are opened in this
/// time, in which nothing else is sent.
constexpr Duration kOpensAhead = 50ms;
/// Time that flows get to complete after the last arrival. Incomplete flows then count with the
/// time that has passed.
constexpr Duration kRacksPatience = 5s;
constexpr uint16_t kFirst = 1000, kLast = 65000;

Topology leafSpine(const RackParams& p) {
  PortOptions port;
  port.rate = kHostRate;
  port.delay = kHop;
  port.discipline = disciplineOf(p.scheme);
  port.packets = static_cast<size_t>(kHostRate / 8 * toSeconds(kRackRtt)) / kFull;
  port.thresholdPackets = kMarkAbove;
  LeafSpine tree;
  tree.hostsPerLeaf = p.hostsPerLeaf;
  tree.access = tree.fabric = tree.host = port;
  tree.host.packets = 0;  // a host's own queue holds what its TCP sends
  return tree.build();
}

struct LeafFlow {
  size_t from = 0, to = 0;
  uint64_t bytes = 0;
  Time begin{};
  std::unique_ptr<TcpFlow> tcp;
  bool done() const { return tcp && tcp->received() >= bytes; }
};

/// The racks and the flows between them.
class Racks {
 public:
  explicit Racks(const RackParams& p)
      : simulation(p.seed),
        network(simulation, leafSpine(p), Random(p.seed).next()),
        hosts(simulation, network) {
    if (p.shim == "off") return;
    Random seeds(p.seed);
    for (size_t h = 0; h < hosts.size(); ++h) hosts.at(h).addShim(shimOf(p), seeds.next());
  }
  /// Draws the flows: Poisson arrivals between any two hosts during the time that `p` sets.
  void draw(const RackParams& p) {
    Sizes sizes = namedSizes(p.sizes);
    Random random(p.seed);
    LeafSpine shape;
    double uplinks = static_cast<double>(shape.leaves * shape.spines) * kHostRate;
    double leaving = 1 - 1 / static_cast<double>(shape.leaves);
    Duration gap = fromSeconds(sizes.mean(p.most) * 8 * leaving / (p.load * uplinks));
    Time start = simulation.now() + kOpensAhead;
    for (const HostFlow& f :
         flowsOfRandomPairs(random, sizes, {hosts.size(), gap, fromSeconds(p.time / 1000), p.most}))
      flows.push_back({f.client, f.server, f.bytes, start + (f.begin - Time{}), nullptr});
  }
  /// Runs the flows until all are complete, or until kRacksPatience after the last arrival.
  void run(const RackParams& p) {
    tcp::Options options = tcpOf(p);
    Time last{};
    for (size_t i = 0; i < flows.size(); ++i) {
      LeafFlow& flow = flows[i];
      last = std::max(last, flow.begin);
      auto port = static_cast<uint16_t>(kFirst + i % (kLast - kFirst));
      // The connections are opened one after the other. If all were opened at once, their SYNs
      // would cause an incast.
      auto turn = static_cast<int64_t>(i) * (kOpensAhead / 2) / static_cast<int64_t>(flows.size());
      simulation.after(turn, [this, &flow, options, port] {
        flow.tcp = std::make_unique<TcpFlow>(simulation, hosts.at(flow.from), hosts.at(flow.to),
                                             port, 0, options);
      });
      simulation.at(flow.begin, [&flow] { flow.tcp->write(flow.bytes); });
    }
    while (simulation.now() < last + kRacksPatience &&
           !std::ranges::all_of(flows, [](const LeafFlow& f) { return f.done(); }))
      simulation.run(10ms);
  }

  Simulation simulation;
  SwitchedNetwork network;
  NetworkHosts hosts;
  std::vector<LeafFlow> flows;
};

}  // namespace

Json runLeafSpine(const RackParams& p) {
  Racks racks(p);
  racks.draw(p);
  racks.run(p);
  std::vector<double> all, small;
  uint64_t timeouts = 0, smallTimeouts = 0, retransmits = 0, repeats = 0, incomplete = 0;
  for (const LeafFlow& f : racks.flows) {
    Time end = f.done() ? f.tcp->finishedAt() : racks.simulation.now();
    all.push_back(toSeconds(end - f.begin));
    incomplete += !f.done();
    timeouts += f.tcp->timeouts(), retransmits += f.tcp->retransmits(), repeats += f.tcp->repeats();
    if (f.bytes > kSmallFlow) continue;
    small.push_back(all.back());
    smallTimeouts += f.tcp->timeouts();
  }
  uint64_t packets = 0, dropped = 0, marked = 0;
  for (const Port& port : racks.network.ports())
    packets += port.counters().in, dropped += port.counters().dropped,
        marked += port.counters().marked;
  return {{"hosts", racks.hosts.size()},
          {"load", p.load},
          {"sizes", p.sizes},
          {"flows", all.size()},
          {"incomplete", incomplete},
          {"mean_all", mean(all)},
          {"p50_all", percentile(all, 0.5)},
          {"p99_all", percentile(all, 0.99)},
          {"small", small.size()},
          {"mean_small", mean(small)},
          {"p50_small", percentile(small, 0.5)},
          {"p95_small", percentile(small, 0.95)},
          {"p99_small", percentile(small, 0.99)},
          {"timeouts", timeouts},
          {"timeouts_small", smallTimeouts},
          {"retransmits", retransmits},
          {"repeats", repeats},
          {"packets", packets},
          {"dropped", dropped},
          {"marked", marked},
          {"actuators", shimJson(racks.hosts.shims())},
          {"hash", racks.network.hash()}};
}

}  // namespace braid::sim
