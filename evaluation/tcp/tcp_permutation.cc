#include <algorithm>
#include <memory>
#include <vector>

#include "evaluation/models/traffic.h"
#include "evaluation/tcp/tcp_experiments.h"
#include "simnet/fabric/hosts.h"
#include "simnet/tcp/connection.h"

namespace braid::sim {

namespace {

constexpr size_t kTreeArity = 4;
constexpr uint64_t kHostBytes = uint64_t{1} << 40;
constexpr uint16_t kHostPort = 10000;

Topology fatTreeOf(const TcpParams& p, const TcpSetting& setting) {
  PortOptions port;
  port.rate = setting.rate;
  port.delay = fromSeconds(setting.rtt * 1e-6 / (2 * kLinksOverCore));
  port.discipline = p.control == "dctcp" ? Discipline::kDctcp : Discipline::kDropTail;
  port.packets = setting.queue;
  port.thresholdPackets = p.threshold;
  Pods pods = Pods::fatTree(kTreeArity);
  pods.access = pods.fabric = port;
  pods.host = {.rate = port.rate, .delay = port.delay};  // no queue limit
  return pods.build();
}

/// The index of this cable among the upward cables of its switch.
size_t rankOf(const std::vector<Topology::Cable>& cables, size_t cable) {
  return static_cast<size_t>(
      std::count_if(cables.begin(), cables.begin() + static_cast<ptrdiff_t>(cable),
                    [&](const Topology::Cable& c) {
                      return c.from == cables[cable].from && c.layer == cables[cable].layer;
                    }));
}

/// Adds the path of the packets from one endpoint to the other to a flow's route: the index of the
/// aggregation switch in the sender's pod, and that of the core switch above it.
void addWay(Json& route, const std::string& prefix, const SwitchedNetwork& network, size_t from,
            size_t to, uint64_t flow) {
  constexpr size_t kUp = 1, kOver = 2;  // positions on the path of the cables after the host's own
  std::vector<size_t> way = network.way(from, to, flow);
  const auto& cables = network.topology().cables();
  bool leavesEdge = way.size() > kUp + 1, leavesPod = way.size() == kLinksOverCore;
  if (leavesEdge) route[prefix + "aggregation"] = rankOf(cables, way[kUp]);
  if (leavesPod) route[prefix + "core"] = rankOf(cables, way[kOver]);
}

/// Bulk flows between the hosts of the tree.
class BulkFlows {
 public:
  BulkFlows(Simulation& simulation, SwitchedNetwork& network, const TcpParams& p)
      : simulation_(simulation),
        network_(network),
        hosts_(simulation, network),
        options_(tcpOptionsOf(p)) {}

  /// Adds a flow that connects and sends after `ahead`.
  void add(size_t from, size_t to, Duration ahead) {
    auto port = static_cast<uint16_t>(kHostPort + from);
    Endpoint client{hosts_.at(from).host(false), port}, server{hosts_.at(to).host(false), port};
    Json route{{"from", from}, {"to", to}};
    addWay(route, "", network_, from, to, flowHash(client, server));
    addWay(route, "back_", network_, to, from, flowHash(server, client));
    routes_.push_back(std::move(route));
    simulation_.after(ahead, [this, from, to, port] {
      connections_.push_back(
          std::make_unique<tcp::Connection>(simulation_, hosts_.at(from), hosts_.at(to),
                                            tcp::Connection::Ports{port, port}, options_));
      connections_.back()->client().send(kHostBytes);
      order_.push_back(from);
    });
  }
  /// Bytes received, by sender.
  std::vector<double> received() const {
    std::vector<double> bytes(hosts_.size());
    for (size_t i = 0; i < order_.size(); ++i)
      bytes[order_[i]] = static_cast<double>(connections_[i]->server().received());
    return bytes;
  }
  uint64_t timeouts() const {
    uint64_t sum = 0;
    for (const auto& c : connections_) sum += c->client().stats().timeouts;
    return sum;
  }
  const Json& routes() const { return routes_; }

 private:
  Simulation& simulation_;
  SwitchedNetwork& network_;
  NetworkHosts hosts_;
  tcp::Options options_;
  Json routes_ = Json::array();
  std::vector<std::unique_ptr<tcp::Connection>> connections_;  // in the order of their begin
  std::vector<size_t> order_;                                  // the connections' senders
};

}  // namespace

Json runTcpPermutation(const TcpParams& p) {
  TcpSetting setting = settingOf(p, kPermutation);
  Simulation simulation(p.seed);
  Random random(p.seed);
  SwitchedNetwork network(simulation, fatTreeOf(p, setting), random.next());
  BulkFlows flows(simulation, network, p);
  std::vector<size_t> to = derangement(network.hosts(), random);
  for (size_t from = 0; from < to.size(); ++from)
    flows.add(from, to[from], startOf(setting, random));
  double warmUp = setting.seconds * kWarmUpShare, measured = setting.seconds - warmUp;
  simulation.run(fromSeconds(warmUp));
  std::vector<double> before = flows.received();
  simulation.run(fromSeconds(measured));
  std::vector<double> goodput = flows.received();
  for (size_t i = 0; i < goodput.size(); ++i)
    goodput[i] = (goodput[i] - before[i]) * 8e-6 / measured;
  uint64_t dropped = 0, marked = 0;
  for (const Port& port : network.ports()) {
    dropped += port.counters().dropped;
    marked += port.counters().marked;
  }
  return {{"goodput_mbps", goodput},  {"goodput_mean_mbps", mean(goodput)},
          {"jain", jain(goodput)},    {"dropped", dropped},
          {"marked", marked},         {"timeouts", flows.timeouts()},
          {"routes", flows.routes()}, {"hash", network.hash()}};
}

}  // namespace braid::sim
