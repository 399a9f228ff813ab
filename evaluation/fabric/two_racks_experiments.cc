#include <array>
#include <map>

#include "evaluation/fabric/fabric_experiments.h"
#include "evaluation/fabric/scheme_traffic.h"
#include "evaluation/models/flows.h"
#include "evaluation/models/traffic.h"

namespace braid::sim {

namespace {

// FUSO fig. 5 and section V-B.
constexpr double kRackRate = 1e9;
constexpr Duration kTwoRacksRtt = 280us;
constexpr size_t kRackPortBytes = 128 << 10, kRackMarks = 32 << 10;
constexpr size_t kRackPaths = 3, kHostsPerRack = 3;
constexpr size_t kRackConnections = 5;  // of each kind between two hosts
constexpr size_t kRackSubflows = 4;
constexpr size_t kRackFlows = 1500;
constexpr double kRackLoss = 0.02;
// both directions of path P1: the cables that are added first
constexpr std::array<size_t, 2> kP1{0, 1};

/// The end of a host's connection. Each connection has its own place behind the host's port, so it
/// also has its own hashes and windows.
size_t place(size_t host, size_t connection) {
  return host * kRackConnections + connection;
}

Topology twoRacks() {
  constexpr int kHops = 3;
  PortOptions port;
  port.rate = kRackRate;
  port.delay = kTwoRacksRtt / 2 / kHops;
  port.discipline = Discipline::kDctcp;
  port.bytes = kRackPortBytes;
  port.thresholdBytes = kRackMarks;
  PortOptions inside;
  inside.rate = 1e12;
  Topology t;
  std::array<size_t, 2> racks{t.addSwitch(), t.addSwitch()};
  for (size_t i = 0; i < kRackPaths; ++i) t.connect(racks[0], racks[1], port, "core");
  for (size_t rack : racks) {
    for (size_t h = 0; h < kHostsPerRack; ++h) {
      size_t host = t.addSwitch();
      t.connect(rack, host, port, "access");
      for (size_t i = 0; i < kRackConnections; ++i) t.addHost(host, inside, inside);
    }
  }
  return t;
}

/// Poisson requests of the second rack's hosts. They use the connections of each kind in turn.
std::vector<HostFlow> requests(const FabricParams& p) {
  Sizes sizes = namedSizes(p.sizes);
  Random random(p.seed);
  Duration gap = fromSeconds(sizes.mean(p.most) * 8 / (p.load * kHostsPerRack * kRackRate));
  std::map<std::pair<size_t, bool>, size_t> turns;  // by the two hosts, and whether it is small
  std::vector<HostFlow> flows;
  Duration at{};
  for (size_t i = 0; i < p.flows.value_or(kRackFlows); ++i) {
    size_t server = random.below(kHostsPerRack),
           client = kHostsPerRack + random.below(kHostsPerRack);
    uint64_t bytes = sizes.draw(random, p.most);
    size_t turn = turns[{server * 2 * kHostsPerRack + client, bytes <= SchemeTraffic::kSmall}]++ %
                  kRackConnections;
    flows.push_back({place(client, turn), place(server, turn), bytes, Time{} + at});
    at += exponential(random, gap);
  }
  return flows;
}

}  // namespace

Json runTwoRacks(const FabricParams& p) {
  SchemeTrafficOptions options;
  options.scheme = p.scheme;
  options.seed = p.seed;
  options.subflows = kRackSubflows;
  options.sensitive = SchemeTraffic::kSmall;
  options.longLived = true;
  for (size_t cable : kP1) options.lossy.emplace_back(cable, p.loss.value_or(kRackLoss));
  SchemeTraffic traffic(options, twoRacks(), requests(p));
  traffic.run();
  Json j = {{"load", p.load}, {"sizes", p.sizes}};
  j.update(traffic.json());
  return j;
}

}  // namespace braid::sim
