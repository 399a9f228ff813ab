#include "evaluation/fabric/fat_tree.h"

#include <algorithm>

#include "evaluation/models/network.h"
#include "evaluation/models/params.h"

namespace braid::sim {

namespace {

constexpr size_t kBuffers = 8192;  // packet buffers of a gateway
constexpr uint16_t kFirstShort = 2000;

PortOptions portOf(const FabricParams& p) {
  PortOptions port;
  port.rate = p.rate;
  port.delay = fromSeconds(p.delay / 1e6);
  port.discipline = Discipline::kDctcp;
  port.packets = p.queue;
  port.thresholdPackets = p.threshold;
  return port;
}

Topology topologyOf(const FabricParams& p) {
  Pods pods = Pods::fatTree(p.k);
  pods.access = pods.fabric = pods.host = portOf(p);
  pods.host.packets = 0;
  return pods.build();
}

TunnelOptions optionsOf(const FabricParams& p) {
  Params params;
  params.policy = p.policy;
  params.minRto = p.minRto;
  return tunnelOptions(params, p.controller, p.initialWindow);
}

tcp::Options dctcpOf(const FabricParams& p) {
  tcp::Options o;
  o.control = tcp::Control::kDctcp;
  o.ecn = o.ecnEverywhere = true;
  o.initialWindow = static_cast<uint32_t>(p.initialWindow);
  o.content = false;
  return o;
}

}  // namespace

FatTree::FatTree(const FabricParams& p)
    : params(p),
      world(p.seed),
      network(world, topologyOf(p), Random(p.seed).next()),
      gateways(world, network, p.subflows),
      hosts(world, network),
      port_(kFirstShort) {
  for (size_t h = 0; h < network.hosts(); ++h) gateways.add(optionsOf(p)).poolLimit = kBuffers;
}

void FatTree::request(size_t client, size_t server, uint64_t ask, uint64_t answer,
                      std::function<void()> done) {
  tcp::Connection& connection = connect(client, server);
  connection.client().send(ask, [&connection, answer, done = std::move(done)](const tcp::Message&) {
    connection.server().send(answer, [done](const tcp::Message&) { done(); });
  });
}

void FatTree::send(size_t from, size_t to, uint64_t bytes, std::function<void()> done) {
  connect(from, to).client().send(bytes, [done = std::move(done)](const tcp::Message&) { done(); });
}

tcp::Connection& FatTree::connect(size_t client, size_t server) {
  if (port_ == UINT16_MAX) port_ = kFirstShort;
  tcp::Connection::Ports ports{port_, port_};
  ++port_;
  return world.add<tcp::Connection>(hosts.at(client), hosts.at(server), ports, dctcpOf(params));
}

// ---- short flows

void ShortFlows::add(size_t from, size_t to, uint64_t bytes, Duration ahead) {
  size_t i = flows_.size();
  flows_.push_back({tree_.world.now() + ahead, kNever});
  tree_.world.after(ahead, [this, i, from, to, bytes] {
    tree_.send(from, to, bytes, [this, i] { flows_[i].second = tree_.world.now(); });
  });
}

size_t ShortFlows::incomplete() const {
  return static_cast<size_t>(
      std::ranges::count(flows_, kNever, [](const auto& f) { return f.second; }));
}

void ShortFlows::finish() {
  tree_.world.runUntil([this] { return incomplete() == 0; }, kFatTreePatience);
}

std::vector<double> ShortFlows::times() const {
  std::vector<double> all;
  for (auto [begin, end] : flows_)
    all.push_back(toSeconds(std::min(end, tree_.world.now()) - begin));
  return all;
}

Json timesJson(const std::vector<double>& times, size_t incomplete) {
  return {{"count", times.size()},         {"incomplete", incomplete},
          {"mean", mean(times)},           {"p50", percentile(times, 0.5)},
          {"p90", percentile(times, 0.9)}, {"p99", percentile(times, 0.99)}};
}

}  // namespace braid::sim
