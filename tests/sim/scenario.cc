#include "tests/sim/scenario.h"

#include <gtest/gtest.h>

namespace braid::sim {

Scenario::Scenario(uint64_t seed, TunnelOptions options, Duration keepalive)
    : world(seed), edge(world.addNode("edge", options)), hub(world.addNode("hub", options)) {
  world.pair(edge, hub, keepalive);
}

// The checks that must hold at the end of every scenario.
Scenario::~Scenario() {
  EXPECT_EQ(world.failure(), "");
  for (Node* node : {&edge, &hub}) {
    EXPECT_EQ(node->badPackets, 0u) << node->name() << ", seed " << world.seed();
    EXPECT_TRUE(node->stop()) << node->name() << " keeps buffers after its end, seed "
                              << world.seed();
  }
}

Scenario& Scenario::path(const std::string& name, LinkOptions both, bool v6) {
  world.join(edge, hub, name, both, both, v6);
  return *this;
}

Scenario& Scenario::path(const std::string& name, LinkOptions up, LinkOptions down) {
  world.join(edge, hub, name, std::move(up), std::move(down));
  return *this;
}

Scenario& Scenario::start(Duration limit) {
  world.start();
  EXPECT_TRUE(world.runUntil([&] { return isUp(); }, limit)) << report();
  return *this;
}

bool Scenario::isUp() const {
  auto up = [](const Node& n) { return n.isRunning() && n.status().peers[0].up; };
  return up(edge) && up(hub);
}

Scenario& Scenario::run(Duration d) {
  world.run(d);
  return *this;
}

Scenario& Scenario::change(std::string_view path, const std::function<void(LinkOptions&)>& f) {
  world.path(path).change(f, world.now());
  return *this;
}

Scenario& Scenario::cut(std::string_view path) {
  return change(path, [](LinkOptions& o) { o.loss = 1; });
}

Scenario& Scenario::mend(std::string_view path) {
  return change(path, [](LinkOptions& o) { o.loss = 0; });
}

Scenario& Scenario::unplug(const std::string& path) {
  change(path, [](LinkOptions& o) { o.down = true; });
  edge.setUplink(path, false);
  return *this;
}

Scenario& Scenario::plug(const std::string& path) {
  change(path, [](LinkOptions& o) { o.down = false; });
  edge.setUplink(path, true);
  return *this;
}

TcpFlow& Scenario::download(uint64_t bytes, TcpOptions options) {
  options.bytes = bytes;
  return world.add<TcpFlow>(hub, edge, nextPort_++, options);
}

TcpFlow& Scenario::upload(uint64_t bytes, TcpOptions options) {
  options.bytes = bytes;
  return world.add<TcpFlow>(edge, hub, nextPort_++, options);
}

UdpFlow& Scenario::call(UdpOptions options, bool down) {
  return world.add<UdpFlow>(down ? hub : edge, down ? edge : hub, nextPort_++, options);
}

Ping& Scenario::ping(Duration interval, unsigned count, bool v6) {
  return world.add<Ping>(edge, hub, nextPort_++, interval, count, v6);
}

bool Scenario::finish(const TcpFlow& flow, Duration limit) {
  bool done = world.runUntil([&] { return flow.done(); }, limit);
  EXPECT_EQ(flow.wrongBytes(), 0u) << "seed " << world.seed();
  if (!done) ADD_FAILURE() << flow.describe() << "\n" << report();
  return done;
}

const SubflowStatus* Scenario::subflow(const Node& node, std::string_view path) const {
  static thread_local TunnelStatus status;
  status = node.status();
  if (status.peers.empty()) return nullptr;
  for (const SubflowStatus& s : status.peers[0].subflows) {
    if (s.uplink == path) return &s;
    for (const auto& p : world.paths()) {
      if (p->name() == path && s.remote == p->outside().toString()) return &s;
    }
  }
  return nullptr;
}

uint64_t Scenario::sentOn(std::string_view path) const {
  const SubflowStatus* s = subflow(edge, path);
  return s ? s->sentBytes : 0;
}

bool Scenario::isUsed(std::string_view path, Duration within) {
  return world.runUntil(
      [&] {
        const SubflowStatus* s = subflow(edge, path);
        return s && s->state == "active";
      },
      within);
}

}  // namespace braid::sim
