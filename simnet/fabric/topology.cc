#include "simnet/fabric/topology.h"

#include <limits>
#include <queue>
#include <stdexcept>

namespace braid::sim {

size_t Topology::addSwitch() {
  isHost_.push_back(false);
  return nodes() - 1;
}

size_t Topology::addHost(size_t toSwitch, const PortOptions& up, const PortOptions& down) {
  isHost_.push_back(true);
  size_t node = nodes() - 1;
  cables_.push_back({node, toSwitch, up, "access"});
  cables_.push_back({toSwitch, node, down, "access"});
  hosts_.push_back(node);
  attached_.push_back(toSwitch);
  return hosts_.size() - 1;
}

void Topology::connect(size_t a, size_t b, const PortOptions& both, const std::string& layer) {
  cables_.push_back({a, b, both, layer});
  cables_.push_back({b, a, both, layer});
}

std::vector<std::vector<std::vector<uint32_t>>> Topology::routes() const {
  constexpr size_t kFar = std::numeric_limits<size_t>::max();
  std::vector<std::vector<uint32_t>> from(nodes()), to(nodes());
  for (uint32_t c = 0; c < cables_.size(); ++c) {
    from[cables_[c].from].push_back(c);
    to[cables_[c].to].push_back(c);
  }
  std::vector<std::vector<std::vector<uint32_t>>> routes(
      nodes(), std::vector<std::vector<uint32_t>>(nodes()));
  for (size_t goal = 0; goal < nodes(); ++goal) {
    if (isHost_[goal]) continue;
    std::vector<size_t> distance(nodes(), kFar);
    distance[goal] = 0;
    std::queue<size_t> reached;
    for (reached.push(goal); !reached.empty(); reached.pop()) {
      size_t node = reached.front();
      if (isHost_[node]) continue;  // a host forwards nothing
      for (uint32_t c : to[node]) {
        size_t before = cables_[c].from;
        if (distance[before] != kFar) continue;
        distance[before] = distance[node] + 1;
        reached.push(before);
      }
    }
    for (size_t node = 0; node < nodes(); ++node) {
      if (node == goal || distance[node] == kFar) continue;
      for (uint32_t c : from[node]) {
        size_t next = cables_[c].to;
        if (!isHost_[next] && distance[next] + 1 == distance[node]) routes[node][goal].push_back(c);
      }
    }
  }
  return routes;
}

Topology LeafSpine::build() const {
  Topology t;
  std::vector<size_t> spine(spines);
  for (size_t& s : spine) s = t.addSwitch();
  for (size_t l = 0; l < leaves; ++l) {
    size_t leaf = t.addSwitch();
    for (size_t s : spine) t.connect(leaf, s, fabric, "core");
    for (size_t h = 0; h < hostsPerLeaf; ++h) t.addHost(leaf, host, access);
  }
  return t;
}

Pods Pods::fatTree(size_t k) {
  if (k < 2 || k % 2 != 0) throw std::runtime_error("a fat tree has an even k of at least 2");
  Pods p;
  p.pods = k;
  p.aggregation = p.edge = p.hostsPerEdge = k / 2;
  p.core = k * k / 4;
  return p;
}

Pods Pods::fuso() {
  Pods p;
  p.pods = 4;
  p.aggregation = p.edge = 2;
  p.hostsPerEdge = 8;
  p.core = 4;
  return p;
}

Topology Pods::build() const {
  Topology t;
  std::vector<size_t> top(core);
  for (size_t& c : top) c = t.addSwitch();
  size_t each = core / aggregation;
  for (size_t pod = 0; pod < pods; ++pod) {
    std::vector<size_t> upper(aggregation);
    for (size_t a = 0; a < aggregation; ++a) {
      upper[a] = t.addSwitch();
      for (size_t c = a * each; c < (a + 1) * each; ++c)
        t.connect(upper[a], top[c], fabric, "core");
    }
    for (size_t e = 0; e < edge; ++e) {
      size_t rack = t.addSwitch();
      for (size_t a : upper) t.connect(rack, a, fabric, "aggregation");
      for (size_t h = 0; h < hostsPerEdge; ++h) t.addHost(rack, host, access);
    }
  }
  return t;
}

}  // namespace braid::sim
