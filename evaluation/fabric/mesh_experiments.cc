#include <algorithm>
#include <array>
#include <cstdint>
#include <stdexcept>

#include "evaluation/fabric/fabric_experiments.h"
#include "evaluation/fabric/scheme_traffic.h"
#include "evaluation/models/flows.h"
#include "evaluation/models/traffic.h"

namespace braid::sim {

namespace {

// CoFUSO section 6.2, fig. 12. For details that the figure does not show see Routers in network.h.
constexpr double kMeshRate = 300e6;
constexpr Duration kMeshRtt = 48ms;
constexpr size_t kMeshWidth = 4;  // R2..R5, R6..R9
constexpr size_t kMeshHostsPerSide = 10;
constexpr size_t kMeshLossy = 4;
constexpr double kMeshLoss = 0.1;
constexpr size_t kMeshFlows = 500;
constexpr size_t kMeshSubflows = 5, kMeshWindow = 10;
constexpr uint64_t kMeshLargest = 100'000;
constexpr Duration kMeshMinRto = 200ms;
/// Places per host. A place is one end of a connection: a gateway behind the host's port. Each pair
/// of places carries at most one flow of a run.
constexpr size_t kMeshPlaces = 8;
constexpr size_t kMeshMostFlows = kMeshPlaces * kMeshPlaces * kMeshHostsPerSide;

struct Mesh {
  Topology topology;
  std::vector<size_t> inner;  ///< cables from R6..R9 to R2..R5, the direction of responses
};

Mesh mesh() {
  constexpr int kHops = 5;
  PortOptions link;
  link.rate = kMeshRate;
  link.delay = kMeshRtt / 2 / kHops;
  link.bytes = static_cast<size_t>(3 * kMeshRate / 8 * toSeconds(kMeshRtt));
  PortOptions inside;
  inside.rate = 1e12;
  Mesh m;
  Topology& t = m.topology;
  size_t r1 = t.addSwitch(), r10 = t.addSwitch();
  std::array<size_t, kMeshWidth> near{}, far{};
  for (size_t i = 0; i < kMeshWidth; ++i) {
    near[i] = t.addSwitch(), far[i] = t.addSwitch();
    t.connect(r1, near[i], link, "core");
    t.connect(far[i], r10, link, "core");
  }
  for (size_t a : near) {
    for (size_t b : far) {
      t.connect(a, b, link, "core");
      m.inner.push_back(t.cables().size() - 1);
    }
  }
  for (size_t router : {r1, r10}) {
    for (size_t h = 0; h < kMeshHostsPerSide; ++h) {
      size_t host = t.addSwitch();
      t.connect(router, host, link, "access");
      for (size_t i = 0; i < kMeshPlaces; ++i) t.addHost(host, inside, inside);
    }
  }
  return m;
}

/// Each host below R10 sends Poisson flows to its own host below R1.
std::vector<HostFlow> meshFlows(const FabricParams& p) {
  size_t count = p.flows.value_or(kMeshFlows);
  if (count > kMeshMostFlows)
    throw std::runtime_error("mesh: at most " + std::to_string(kMeshMostFlows) + " flows");
  Sizes sizes = namedSizes(p.sizes);
  uint64_t most = std::min(p.most, kMeshLargest);
  Duration gap = fromSeconds(sizes.mean(most) * 8 / (p.load * kMeshRate));
  Random random(p.seed);
  std::vector<HostFlow> flows;
  std::array<Duration, kMeshHostsPerSide> at{};
  for (size_t i = 0; i < count; ++i) {
    size_t host = i % kMeshHostsPerSide, turn = i / kMeshHostsPerSide;
    at[host] += exponential(random, gap);
    size_t client = host * kMeshPlaces + turn % kMeshPlaces;
    size_t server = (kMeshHostsPerSide + host) * kMeshPlaces + turn / kMeshPlaces;
    flows.push_back({client, server, sizes.draw(random, most), Time{} + at[host]});
  }
  std::ranges::stable_sort(flows, {}, &HostFlow::begin);
  return flows;
}

}  // namespace

Json runMesh(const FabricParams& p) {
  Mesh m = mesh();
  SchemeTrafficOptions options;
  options.scheme = p.scheme;
  options.seed = p.seed;
  options.sensitive = kMeshLargest;
  options.subflows = kMeshSubflows;
  options.subflowWindow = options.tcpWindow = kMeshWindow;
  options.patience = kFlowLimit;
  options.minRto = kMeshMinRto;
  options.ecn = false;
  options.correctiveBin = 0.25;
  options.recovery.codingRate = p.codingRate;
  Random pick(p.seed);
  for (size_t left = kMeshLossy; left > 0; --left) {
    size_t i = pick.below(m.inner.size());
    options.lossy.emplace_back(m.inner[i], p.loss.value_or(kMeshLoss));
    m.inner.erase(m.inner.begin() + static_cast<ptrdiff_t>(i));
  }
  SchemeTraffic traffic(options, m.topology, meshFlows(p));
  traffic.run();
  Json j = {{"load", p.load}, {"sizes", p.sizes}};
  j.update(traffic.json());
  return j;
}

}  // namespace braid::sim
