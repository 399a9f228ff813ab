#include "evaluation/models/network.h"

#include <array>
#include <stdexcept>

namespace braid::sim {

namespace {
/// Packet buffers of a gateway: more than any of the flows needs.
constexpr size_t kPool = 32768;
}  // namespace

Cable Network::cable(const LinkOptions& up, const LinkOptions& down) {
  return {&world.addLink(up), &world.addLink(down)};
}

Network::Pair Network::addPair(const TunnelOptions& options) {
  std::string n = std::to_string(pairs.size());
  Pair pair{&world.addNode("client" + n, options), &world.addNode("server" + n, options)};
  pair.client->poolLimit = pair.server->poolLimit = kPool;
  world.pair(*pair.client, *pair.server);
  pairs.push_back(pair);
  subflows_.push_back(0);
  return pair;
}

void Network::join(const Pair& pair, const std::vector<Cable>& route) {
  Path& path = join(pair, "path" + std::to_string(world.paths().size()), {}, {});
  for (const Cable& cable : route) {
    path.upVia.push_back(cable.up);
    path.downVia.insert(path.downVia.begin(), cable.down);
  }
}

Path& Network::join(const Pair& pair, const std::string& name, const LinkOptions& up,
                    const LinkOptions& down) {
  for (size_t i = 0; i < pairs.size(); ++i) subflows_[i] += pairs[i].client == pair.client;
  return world.join(*pair.client, *pair.server, name, up, down);
}

bool Network::ready() const {
  for (size_t i = 0; i < pairs.size(); ++i) {
    for (const Node* node : {pairs[i].client, pairs[i].server}) {
      TunnelStatus status = node->status();
      if (!status.peers[0].up) return false;
      size_t active = 0;
      for (const SubflowStatus& s : status.peers[0].subflows) active += s.state == "active";
      if (active < subflows_[i]) return false;
    }
  }
  return true;
}

void Network::start() {
  constexpr Duration kPatience = 30s;
  constexpr Duration kStep = 10ms;
  world.start();
  Time end = world.now() + kPatience;
  while (!ready()) {
    if (world.now() >= end)
      throw std::runtime_error("the tunnel does not come up\n" + world.report());
    world.run(kStep);
  }
  for (auto& [link, loss] : lossy_) {
    LinkOptions options = link->options();
    loss.apply(options);
    link->setOptions(std::move(options), world.now());
  }
  for (auto& [path, loss] : lossyPaths_)
    path->change([&loss = loss](LinkOptions& o) { loss.apply(o); }, world.now());
}

void requireSound(const World& world) {
  if (!world.failure().empty()) throw std::runtime_error(world.failure());
}

Testbed::Testbed(uint64_t seed, const TunnelOptions& options, const Loss& p2)
    : Connection(seed, options) {
  // The delays differ slightly by the seed, so that the path that is faster, and is filled first,
  // varies between connections.
  Random hair(seed);
  auto link = [&] {
    Duration delay = kRtt / 2 + std::chrono::microseconds(hair.below(50));
    return LinkOptions{.rateBitsPerSecond = kRate, .delay = delay, .queueBytes = kQueue};
  };
  Cable first = network.cable(link());
  Cable second = network.cable(link());
  network.lose(*second.down, p2);
  Cable server = network.cable({.rateBitsPerSecond = kRate, .queueBytes = kQueue});
  network.join(pair, {first, server});
  network.join(pair, {first, server});
  network.join(pair, {second, server});
}

Routers::Routers(uint64_t seed, uint64_t layout, const TunnelOptions& options, size_t subflows,
                 const Loss& loss)
    : Connection(seed, options) {
  constexpr size_t kWidth = 4;  // R2..R5, R6..R9
  constexpr int kHops = 5;
  LinkOptions link{.rateBitsPerSecond = kRate,
                   .delay = kRtt / 2 / kHops,
                   .queueBytes = static_cast<size_t>(3 * kRate / 8 * toSeconds(kRtt))};
  std::array<bool, kWidth * kWidth> isLossy{};
  Random pick(layout);
  for (size_t left = kLossy; left > 0;) {
    bool& one = isLossy[pick.below(isLossy.size())];
    left -= !one;
    one = true;
  }
  std::vector<Cable> near, far, mesh;
  Cable clientHost = network.cable(link), serverHost = network.cable(link);
  for (size_t i = 0; i < kWidth; ++i)
    near.push_back(network.cable(link)), far.push_back(network.cable(link));
  for (bool lossy : isLossy) {
    mesh.push_back(network.cable(link));
    if (lossy) network.lose(*mesh.back().down, loss);
  }
  Random hash(seed);
  for (size_t i = 0; i < subflows; ++i) {
    size_t a = hash.below(kWidth), b = hash.below(kWidth);
    network.join(pair, {clientHost, near[a], mesh[a * kWidth + b], far[b], serverHost});
  }
}

Fabric::Fabric(uint64_t seed, const TunnelOptions& options, const Loss& path, const Loss& edge)
    : network(seed, options), hash_(seed) {
  constexpr int kHops = 3;
  LinkOptions link{.rateBitsPerSecond = kRate,
                   .delay = kRtt / 2 / kHops,
                   .queueBytes = kBuffer,
                   .ecnThresholdBytes = kMarks};
  for (size_t i = 0; i < kPaths; ++i) {
    paths_.push_back(network.cable(link));
    if (i == 0) lose(paths_.back(), path);
  }
  for (size_t host = 1; host <= kHosts; ++host) {
    Cable access = network.cable(link);
    if (host > kHosts / 2) lose(access, edge);
    clientSide_.push_back(access);
    // The same access link as seen from the server's side: here traffic to the server uses the
    // direction that carries responses for a client.
    serverSide_.push_back({access.down, access.up});
  }
}

void Fabric::lose(const Cable& cable, const Loss& loss) {
  network.lose(*cable.up, loss);
  network.lose(*cable.down, loss);
}

Network::Pair Fabric::connect(size_t client, size_t server, size_t subflows) {
  Network::Pair pair = network.addPair();
  bool sameRack = (client <= kHosts / 2) == (server <= kHosts / 2);
  for (size_t i = 0; i < subflows; ++i) {
    std::vector<Cable> route{clientSide_[client - 1]};
    if (!sameRack) route.push_back(paths_[hash_.below(kPaths)]);
    route.push_back(serverSide_[server - 1]);
    network.join(pair, route);
  }
  return pair;
}

}  // namespace braid::sim
