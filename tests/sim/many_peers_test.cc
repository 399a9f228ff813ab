// One gateway with many peers: some with traffic, some silent, some not running.

#include <gtest/gtest.h>

#include <sstream>

#include "tests/sim/scenario.h"

namespace braid::sim::many_peers_test {
namespace {

/// A hub, edges with two uplinks each, one edge that never starts, and a second hub that half of
/// the edges also know. Every edge has its own rates, delays and losses.
struct Star {
  explicit Star(uint64_t seed, TunnelOptions options = {})
      : world(seed), random(seed ^ 0x57a2), hub(node("hub")) {
    options.recovery = random.chance(0.5) ? "adaptive" : "none";
    options.repairTime = 500ms + Duration(random.below(2'000'000'000));
    hub.options = options;
    hub.callsBack = seed % 2 == 0;
    hub2().options = options;
    for (int i = 0; i < kEdges; ++i) {
      Node& edge = node("edge" + std::to_string(i));
      edge.options = options;
      edge.options.ackShim = random.chance(0.5);
      edges.push_back(&edge);
      world.pair(edge, hub, random.chance(0.5) ? 1s : 10s);
      if (i % 2 == 0) world.pair(edge, hub2(), 3s);
      for (const char* uplink : {"a", "b"}) {
        LinkOptions link;
        link.rateBitsPerSecond = 2e6 + 5e7 * random.uniform();
        link.delay = fromSeconds(0.002 + 0.08 * random.uniform());
        link.loss = random.chance(0.6) ? 0.05 * random.uniform() : 0;
        if (random.chance(0.3)) link.jitter = link.delay / 4;
        std::string name = uplink + std::to_string(i);
        Path& path = world.join(edge, hub, name, link, link, random.chance(0.2));
        if (random.chance(0.3)) path.enableNat(10s, world.now());
        if (i % 2 == 0) world.join(edge, hub2(), name + "'", link, link);
        if (random.chance(0.3)) {
          edge.uplinks.back().preference.use = static_cast<PathUse>(random.below(3));
          edge.uplinks.back().preference.ceiling = random.chance(0.5) ? 500'000 : 0;
        }
      }
    }
    world.pair(node("away"), hub);
    world.join(*world.nodes().back(), hub, "nowhere", {.down = true}, {.down = true});
    world.start();
  }

  Node& node(const std::string& name) { return world.addNode(name); }
  Node& hub2() {
    if (!second) second = &node("hub2");
    return *second;
  }
  Node& edge() { return *edges[random.below(edges.size())]; }

  /// Starts a transfer of a random edge, to or from one of the hubs that it knows.
  void transfer() {
    Node& near = edge();
    Node& far = near.peers.size() > 1 && random.chance(0.5) ? hub2() : hub;
    TcpOptions o;
    o.bytes = 1000 + random.below(300'000);
    o.v6 = random.chance(0.3);
    bool down = random.chance(0.6);
    files.push_back(&world.add<TcpFlow>(down ? far : near, down ? near : far, port++, o));
  }
  void call() {
    Node& near = edge();
    bool down = random.chance(0.5);
    UdpOptions o{.count = 50 + random.below(100)};
    calls.push_back(&world.add<UdpFlow>(down ? hub : near, down ? near : hub, port++, o));
  }
  void trouble() {
    Path& path = *world.paths()[random.below(world.paths().size() - 1)];
    Duration d = fromSeconds(0.05 + 2 * random.uniform());
    Node& node = random.chance(0.5) ? hub : edge();
    switch (random.below(7)) {
      case 0:
      case 1:
        path.change([](LinkOptions& o) { o.down = true; }, world.now());
        world.after(
            d, [this, &path] { path.change([](LinkOptions& o) { o.down = false; }, world.now()); });
        break;
      case 2:
        path.rebind(random.chance(0.5));
        break;
      case 3:
        path.unreachable = true;
        world.after(d, [&path] { path.unreachable = false; });
        break;
      case 4: {
        TunnelOptions next = node.options;
        next.repairTime = 300ms + d;
        next.scheduler = random.chance(0.5) ? "minrtt" : "earliest";
        node.tunnel().setTunables(next);
        node.tunnel().setPeers(node.peers, node.clock());
        break;
      }
      case 5:
        if (random.chance(0.3)) {
          EXPECT_TRUE(node.stop());
          node.start();
        }
        break;
      case 6:
        node.jumpClock(d / 10);
        break;
    }
  }
  void run() {
    for (int i = 0; i < 30; ++i) {
      world.after(fromSeconds(5 * random.uniform()),
                  [this] { random.chance(0.7) ? transfer() : call(); });
      world.after(fromSeconds(5 * random.uniform()), [this] { trouble(); });
    }
    world.run(8s);
    auto done = [&] {
      return std::all_of(files.begin(), files.end(), [](const TcpFlow* f) { return f->done(); });
    };
    EXPECT_TRUE(world.runUntil(done, 120s)) << world.report();
    world.run(200s);  // after 180 s the old sessions of restarted peers are removed
    EXPECT_EQ(world.failure(), "");
    for (const TcpFlow* f : files) EXPECT_EQ(f->wrongBytes(), 0u) << f->describe();
    for (const UdpFlow* f : calls) EXPECT_EQ(f->wrong() + f->duplicates(), 0u);
  }
  /// A fingerprint of all datagrams sent and of the gateways' counters.
  std::string story() const {
    std::ostringstream out;
    out << world.hash() << " " << world.now().time_since_epoch().count();
    for (const auto& n : world.nodes()) {
      out << "; " << n->name() << " " << n->sentDatagrams << " " << n->receivedDatagrams << " "
          << n->events.size();
      for (uint64_t drops : n->status().drops) out << " " << drops;
    }
    return out.str();
  }

  static constexpr int kEdges = 7;
  World world;
  Random random;
  Node& hub;
  Node* second = nullptr;
  std::vector<Node*> edges;
  std::vector<TcpFlow*> files;
  std::vector<UdpFlow*> calls;
  uint16_t port = 1000;
};

class ManyPeers : public testing::TestWithParam<uint64_t> {};

TEST_P(ManyPeers, EachIsServedWhateverHappensToTheOthers) {
  Star star(GetParam());
  star.run();
  RecordProperty("story", star.story());
}

INSTANTIATE_TEST_SUITE_P(Seeds, ManyPeers, testing::Range<uint64_t>(1, 7));

}  // namespace
}  // namespace braid::sim::many_peers_test
