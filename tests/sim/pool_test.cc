// Buffers and memory of a gateway with many peers, some of which use as much as they can.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/sim/scenario.h"

namespace braid::sim::pool_test {
namespace {

/// A hub with few buffers and its edges.
struct Yard : testing::Test {
  World world{1};
  Node& hub = world.addNode("hub");
  std::vector<Node*> edges;
  uint16_t port = 1000;

  Node& edge(const LinkOptions& link) {
    std::string number = std::to_string(edges.size());
    Node& made = world.addNode("edge" + number);
    world.pair(made, hub);
    world.join(made, hub, "line" + number, link, link);
    edges.push_back(&made);
    return made;
  }
  void start() {
    world.start();
    auto isUp = [](const PeerStatus& peer) { return peer.up; };
    ASSERT_TRUE(world.runUntil([&] { return std::ranges::all_of(hub.status().peers, isUp); }, 5s));
  }
  UdpFlow& stream(Node& to, const UdpOptions& options) {
    return world.add<UdpFlow>(hub, to, port++, options);
  }
  void TearDown() override {
    EXPECT_EQ(world.failure(), "");
    for (const auto& node : world.nodes()) EXPECT_TRUE(node->stop()) << node->name();
  }
};

// Found by review: anybody on the Internet can fill the queues towards slow edges with tiny
// packets. When less than an eighth of the buffers was free, all peers' packets were refused.
TEST_F(Yard, FullQueuesOfSlowEdgesRefuseNobodyElse) {
  hub.poolLimit = 1024;
  for (int i = 0; i < 4; ++i) edge({.rateBitsPerSecond = 200e3, .delay = 20ms});
  Node& fast = edge(kDsl);
  start();
  for (Node* slow : edges) {
    if (slow != &fast) stream(*slow, {.payload = 16, .interval = 1ms, .count = 6000});
  }
  world.run(1s);
  UdpFlow& call = stream(fast, {.count = 200});
  TcpOptions page;
  page.bytes = 300_KB;
  TcpFlow& file = world.add<TcpFlow>(hub, fast, port++, page);
  size_t most = 0;
  for (int i = 0; i < 50; ++i) {
    world.run(100ms);
    most = std::max(most, hub.pool().inUse());
  }
  EXPECT_GT(hub.drops(Drop::kQueueFull), 1000u);
  EXPECT_EQ(hub.drops(Drop::kNoBuffer), 0u) << world.report();
  EXPECT_LE(most, hub.pool().limit() / 8 * 7 + 64);
  EXPECT_EQ(call.received(), 200u) << world.report();
  EXPECT_TRUE(file.done()) << file.describe();
}

// Sent data cannot be reclaimed. Beyond its memory quota new data waits until some sent data has
// arrived.
TEST_F(Yard, WhatIsOnItsWayIsBounded) {
  hub.poolLimit = 512;
  Node& far = edge({.rateBitsPerSecond = 50_Mbit, .delay = 100ms});
  start();
  size_t limit = hub.pool().quota(PacketUse::kSent).limit() / 4 * 3;
  UdpFlow& flood = stream(far, {.payload = 1000, .interval = 400us, .count = 10000});
  uint64_t most = 0;
  for (int i = 0; i < 400; ++i) {
    world.run(10ms);
    most = std::max(most, hub.status().buffersSent);
  }
  EXPECT_LE(most, limit);
  EXPECT_GE(most, limit / 2) << "the path has room for more: " << world.report();
  EXPECT_GT(flood.received(), 1000u);
  EXPECT_EQ(hub.drops(Drop::kNoBuffer), 0u);
  world.run(5s);
  EXPECT_EQ(hub.status().buffersSent, 0u);
  EXPECT_EQ(hub.pool().inUse(), 0u);
}

}  // namespace
}  // namespace braid::sim::pool_test
