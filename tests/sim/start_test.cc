// How tunnels start, restart and end.

#include <gtest/gtest.h>

#include "tests/sim/scenario.h"

namespace braid::sim::start_test {
namespace {

TEST(Start, PageOverTwoPaths) {
  TunnelOptions options;
  options.codelTarget = 1s;  // these hosts do not speak ECN: a drop by the AQM would be right
  Scenario s(1, options);
  s.path("dsl", kDsl).path("lte", kLte).start();
  TcpFlow& down = s.download(2_MB);
  TcpFlow& up = s.upload(2_MB);
  ASSERT_TRUE(s.finish(down, 10s));
  ASSERT_TRUE(s.finish(up, 10s));
  EXPECT_EQ(down.retransmits() + up.retransmits(), 0u) << down.describe() << "\n"
                                                       << up.describe() << s.report();
}

TEST(Start, TheSameSeedGivesTheSameBytes) {
  auto hash = [](uint64_t seed) {
    Scenario s(seed);
    s.path("dsl", {.rateBitsPerSecond = 50_Mbit, .delay = 10ms, .loss = 0.02})
        .path("lte", kLte)
        .start();
    TcpFlow& file = s.download(1_MB);
    s.call({.count = 50});
    s.run(300ms).cut("lte").run(300ms).mend("lte");
    s.finish(file, 10s);
    return s.world.hash();
  };
  EXPECT_EQ(hash(1), hash(1));
  EXPECT_EQ(hash(2), hash(2));
  EXPECT_NE(hash(1), hash(2));
}

TEST(Start, ADeadFirstUplinkCostsLessThanASecond) {
  Scenario s(2);
  s.path("dsl", kDsl).path("lte", kLte).cut("dsl");
  Time began = s.world.now();
  s.start(1s);
  EXPECT_LE(s.world.now() - began, 1s);
  TcpFlow& page = s.download(200_KB);
  ASSERT_TRUE(s.finish(page, 5s));
}

// Found by the chaos test, seed 87: when the handshake on another route ended, the responder
// removed the session that the initiator had chosen.
TEST(Start, HandshakesThatEndInAnyOrderGiveASession) {
  for (int first = 60; first <= 200; first += 10) {
    Scenario s(3);
    s.path("a", {.delay = std::chrono::milliseconds(first)});
    s.path("b", {.delay = 40ms}).path("c", {.delay = 1ms});
    s.start(3s);
    ASSERT_TRUE(s.isUp()) << first;
  }
}

TEST(Start, AHandshakeSurvivesThirtyPercentLoss) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Scenario s(seed);
    s.path("dsl", {.delay = 20ms, .loss = 0.3}).path("lte", {.delay = 40ms, .loss = 0.3});
    s.start(15s);
  }
}

TEST(Start, AWrongPinIsRefused) {
  World world(4);
  Node& edge = world.addNode("edge");
  Node& hub = world.addNode("hub");
  world.pair(edge, hub);
  world.join(edge, hub, "dsl", kDsl, kDsl);
  edge.peers[0].pin = pinOf(77);
  world.start();
  world.run(12s);
  EXPECT_FALSE(edge.status().peers[0].up);
  EXPECT_EQ(hub.sentDatagrams, 0u) << "who does not know its pin gets no answer";
  EXPECT_GT(edge.countEvents(Event::Kind::kHandshakeFailed), 0u);
  EXPECT_LE(edge.sentDatagrams, 100u);
}

TEST(Start, BothGatewaysRestart) {
  Scenario s(5);
  s.path("dsl", kDsl).path("lte", kLte).start();
  TcpFlow& file = s.download(10_MB);
  s.run(1s);
  EXPECT_TRUE(s.edge.stop());
  EXPECT_TRUE(s.hub.stop());
  s.run(500ms);
  s.edge.start();
  s.hub.start();
  ASSERT_TRUE(s.finish(file, 30s));
  EXPECT_TRUE(s.isUp());
}

TEST(Start, TheResponderRestartsUnderTraffic) {
  Scenario s(6);
  s.path("dsl", kDsl).path("lte", kLte).start();
  TcpFlow& down = s.download(10_MB);
  TcpFlow& up = s.upload(4_MB);
  s.run(1s);
  EXPECT_TRUE(s.hub.stop());
  s.hub.start();
  ASSERT_TRUE(s.world.runUntil([&] { return s.isUp(); }, 4s)) << s.report();
  ASSERT_TRUE(s.finish(down, 30s));
  ASSERT_TRUE(s.finish(up, 30s));
}

TEST(Start, TheInitiatorRestartsUnderTraffic) {
  Scenario s(7);
  s.path("dsl", kDsl).path("lte", kLte).start();
  TcpFlow& down = s.download(10_MB);
  s.run(1s);
  EXPECT_TRUE(s.edge.stop());
  s.edge.start();
  ASSERT_TRUE(s.world.runUntil([&] { return s.isUp(); }, 1s)) << s.report();
  ASSERT_TRUE(s.finish(down, 30s));
}

TEST(Start, AGoodByeIsNoticedAtOnce) {
  Scenario s(8);
  s.path("dsl", kDsl).path("lte", kLte).start();
  s.run(1s);
  EXPECT_TRUE(s.hub.shutDown());
  s.run(100ms);
  EXPECT_FALSE(s.edge.status().peers[0].up) << s.report();
  EXPECT_EQ(s.edge.countEvents(Event::Kind::kPeerDown), 1u);
  s.hub.start();
  EXPECT_TRUE(s.world.runUntil([&] { return s.isUp(); }, 15s)) << s.report();
}

TEST(Start, OverIpv6WithIpv6Inside) {
  Scenario s(9);
  s.path("dsl", kDsl, true).path("lte", kLte, true).start();
  TcpFlow& six = s.download(2_MB, {.v6 = true});
  TcpFlow& four = s.upload(2_MB);
  Ping& ping = s.ping(50ms, 10, true);
  ASSERT_TRUE(s.finish(six, 10s));
  ASSERT_TRUE(s.finish(four, 10s));
  s.run(600ms);
  EXPECT_GE(ping.answered(), 9u);  // datagrams may be lost in full queues
}

TEST(Start, AnIdleTunnelSendsKeepalivesOnly) {
  Scenario s(10);
  s.path("dsl", kDsl).path("lte", kLte).start();
  s.run(20s);
  uint64_t before = s.edge.sentDatagrams + s.hub.sentDatagrams;
  s.run(60s);
  // On each of two paths, a PING in each direction and its ACK every 10 s.
  EXPECT_LE(s.edge.sentDatagrams + s.hub.sentDatagrams - before, 2u * 2 * 2 * 7) << s.report();
  EXPECT_TRUE(s.isUp());
  EXPECT_EQ(s.edge.pool().inUse() + s.hub.pool().inUse(), 0u);
}

TEST(Start, AnIdleTunnelWithoutKeepalivesIsSilent) {
  Scenario s(11, {}, 0s);
  s.path("dsl", kDsl).start();
  s.run(20s);
  uint64_t before = s.edge.sentDatagrams + s.hub.sentDatagrams;
  s.run(60s);
  EXPECT_EQ(s.edge.sentDatagrams + s.hub.sentDatagrams, before) << s.report();
}

TEST(Start, BothMayBegin) {
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    World world(seed);
    Node& east = world.addNode("east");
    Node& west = world.addNode("west");
    world.pair(east, west);
    for (int i = 0; i < 2; ++i) {
      world.join(east, west, "east" + std::to_string(i), kDsl, kDsl);
      world.join(west, east, "west" + std::to_string(i), kDsl, kDsl);
    }
    world.start();
    auto isUp = [&] { return east.status().peers[0].up && west.status().peers[0].up; };
    ASSERT_TRUE(world.runUntil(isUp, 1s)) << seed << world.report();
    world.run(1s);
    TcpFlow& file = world.add<TcpFlow>(east, west, uint16_t{5000}, TcpOptions{.bytes = 1_MB});
    ASSERT_TRUE(world.runUntil([&] { return file.done(); }, 3s))
        << seed << file.describe() << world.report();
    world.run(20s);
    EXPECT_EQ(east.countEvents(Event::Kind::kPeerDown) + west.countEvents(Event::Kind::kPeerDown),
              0u)
        << seed;
    EXPECT_TRUE(west.stop());
    west.start();
    ASSERT_TRUE(world.runUntil(isUp, 1s)) << seed << world.report();
    world.run(5s);
    EXPECT_TRUE(isUp()) << seed << world.report();
  }
}

TEST(Start, ManyEdgesOnOneHub) {
  World world(12);
  Node& hub = world.addNode("hub");
  std::vector<TcpFlow*> files;
  for (int i = 0; i < 3; ++i) {
    Node& edge = world.addNode("edge" + std::to_string(i));
    world.pair(edge, hub);
    world.join(edge, hub, edge.name() + "-dsl", kDsl, kDsl);
    world.join(edge, hub, edge.name() + "-lte", kLte, kLte);
  }
  world.start();
  world.run(1s);
  for (int i = 0; i < 3; ++i) {
    Node& edge = *world.nodes()[static_cast<size_t>(i) + 1];
    files.push_back(
        &world.add<TcpFlow>(hub, edge, static_cast<uint16_t>(5000 + i), TcpOptions{.bytes = 2_MB}));
    files.push_back(
        &world.add<TcpFlow>(edge, hub, static_cast<uint16_t>(5100 + i), TcpOptions{.bytes = 1_MB}));
  }
  world.run(10s);
  for (TcpFlow* f : files) {
    EXPECT_TRUE(f->done()) << f->describe() << world.report();
    EXPECT_EQ(f->wrongBytes(), 0u);
  }
  EXPECT_EQ(hub.drops(Drop::kForeignSource), 0u);
}

}  // namespace
}  // namespace braid::sim::start_test
