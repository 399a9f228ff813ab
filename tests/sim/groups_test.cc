// An edge with two concentrators for the same networks (tunnel/peer/peer_groups.h): one fails and
// returns, or only seems to.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "inet/ip.h"
#include "tests/sim/scenario.h"
#include "tunnel/peer/peer_groups.h"

namespace braid::sim::groups_test {
namespace {

constexpr const char* kServer = "10.200.0.9";  // a host behind either hub
constexpr Duration kReturnAfter = 5s;

/// An edge, two uplinks, hubs a and b. The server answers pings behind either hub.
struct Pair {
  explicit Pair(uint64_t seed, bool streams = false, Duration keepalive = 10s)
      : world(seed), edge(world.addNode("edge")), a(world.addNode("a")), b(world.addNode("b")) {
    for (Node* node : {&edge, &a, &b}) {
      node->options.returnAfter = kReturnAfter;
      node->options.streams.on = streams;
    }
    for (Node* hub : {&a, &b}) {
      world.pair(edge, *hub, keepalive);
      edge.peers.back().group = "hubs";
      edge.peers.back().prefixes.push_back(*Prefix::parse("10.200.0.0/16"));
      for (const char* uplink : {"dsl", "lte"})
        world.join(edge, *hub, uplink + hub->name(), uplink[0] == 'd' ? kDsl : kLte,
                   uplink[0] == 'd' ? kDsl : kLte);
      hub->tap = [this, hub](ByteView packet) {
        std::optional<InnerPacket> ip = parseInnerPacket(packet);
        came.push_back(hub);
        if (ip && ip->protocol == ip::kTcp) segments.push_back(hub);
        return false;
      };
    }
    edge.tap = [this](ByteView packet) {
      std::optional<InnerPacket> ip = parseInnerPacket(packet);
      if (ip && ip->src == address(kServer) && ip->protocol == ip::kIcmp &&
          load16(&packet[ip->l4Offset + 6]) >= awaited)
        answers.push_back(world.now());
      return true;
    };
  }
  ~Pair() {
    EXPECT_EQ(world.failure(), "");
    for (Node* node : {&edge, &a, &b})
      EXPECT_TRUE(node->stop()) << node->name() << " keeps buffers";
  }
  Pair& start(Duration d = 3s) {
    world.start();
    world.run(d);
    return *this;
  }
  IpFields toServer(uint8_t protocol) const {
    return {edge.host(), address(kServer), protocol, Ecn::kNotEct, true};
  }
  void ping() { edge.send(echoPacket(toServer(ip::kIcmp), false, 7, sequence++, Bytes(64))); }
  /// Sends a segment of a connection from this port. Returns the hub at which it left the tunnel.
  Node* segment(uint16_t port, uint8_t flags = TcpFields::kAck) {
    segments.clear();
    edge.send(tcpPacket(toServer(ip::kTcp), {.sport = port,
                                             .dport = 22,
                                             .seq = 1,
                                             .ack = 1,
                                             .flags = flags,
                                             .window = 1000,
                                             .payload = Bytes(flags & TcpFields::kSyn ? 0 : 10)}));
    world.run(200ms);
    return segments.empty() ? nullptr : segments.front();
  }
  /// Sends a ping every 20 ms for the time `d`.
  void pingFor(Duration d) {
    for (Time end = world.now() + d; world.now() < end; world.run(20ms)) ping();
  }
  /// Keeps sending pings and returns the time until the first answer to a ping sent from now on.
  Duration gap(Duration limit = 5s) {
    Time began = world.now();
    answers.clear();
    awaited = sequence;
    while (answers.empty() && world.now() - began < limit) {
      ping();
      world.run(20ms);
    }
    return answers.empty() ? limit : answers.front() - began;
  }
  std::string used() const {
    std::string names;
    for (const PeerStatus& p : edge.status().peers)
      if (p.inUse) names += p.name;
    return names;
  }
  void cut(bool on, const std::string& hub = "") {
    for (const auto& path : world.paths()) {
      if (hub.empty() || path->name().ends_with(hub))
        path->change([&](LinkOptions& o) { o.loss = on ? 1 : 0; }, world.now());
    }
  }
  size_t changes() const {
    return edge.countEvents(Event::Kind::kPeerReplaced) + edge.countEvents(Event::Kind::kPeerInUse);
  }

  World world;
  Node &edge, &a, &b;
  uint16_t sequence = 0, awaited = 0;
  /// Hubs at which packets left the tunnel, in order; `segments`: those of TCP
  std::vector<Node*> came, segments;
  std::vector<Time> answers;  ///< of the server
};

class Groups : public testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, Groups, testing::Values(1, 2, 3, 4));

TEST_P(Groups, TheFirstPeerIsUsedAndTheOtherOneIsKeptWarm) {
  Pair s(GetParam());
  s.start();
  s.pingFor(1s);
  EXPECT_EQ(s.used(), "a");
  EXPECT_EQ(std::count(s.came.begin(), s.came.end(), &s.b), 0);
  EXPECT_GE(s.answers.size(), 45u);
  for (const PeerStatus& p : s.edge.status().peers) EXPECT_TRUE(p.up) << p.name;
  EXPECT_EQ(s.changes(), 0u);
}

TEST_P(Groups, APeerThatDiesUnderTrafficIsReplacedWithinASecond) {
  Pair s(GetParam());
  s.start();
  s.pingFor(500ms + GetParam() * 7ms);
  ASSERT_TRUE(s.a.stop());
  EXPECT_LE(s.gap(), 1s);
  EXPECT_EQ(s.used(), "b");
  EXPECT_EQ(s.edge.countEvents(Event::Kind::kPeerReplaced), 1u);
}

TEST_P(Groups, APeerThatDiedUnnoticedIsReplacedWithinASecondOfTheFirstPacket) {
  Pair s(GetParam());
  s.start();
  ASSERT_TRUE(s.a.stop());
  s.world.run(4s);  // before the next keepalive
  EXPECT_LE(s.gap(), 1s);
  EXPECT_EQ(s.used(), "b");
}

TEST_P(Groups, APeerThatStopsInOrderIsReplacedAtOnce) {
  Pair s(GetParam());
  s.start();
  s.pingFor(300ms);
  ASSERT_TRUE(s.a.shutDown());
  EXPECT_LE(s.gap(), 400ms);
  EXPECT_EQ(s.used(), "b");
}

TEST_P(Groups, PacketsOfTcpThatWereOnTheirWayToADeadPeerGoToTheOther) {
  Pair s(GetParam());
  s.start();
  ASSERT_TRUE(s.a.stop());
  s.segment(5000, TcpFields::kSyn);
  s.world.run(1s);
  EXPECT_NE(std::count(s.segments.begin(), s.segments.end(), &s.b), 0);
}

TEST_P(Groups, AGapOfAllUplinksChangesNothing) {
  Pair s(GetParam());
  s.start();
  s.pingFor(300ms);
  for (Duration gap : {400ms, 900ms, 2500ms}) {
    s.cut(true);
    s.pingFor(gap);
    s.cut(false);
    s.pingFor(1500ms);
    EXPECT_EQ(s.used(), "a") << gap.count();
  }
  EXPECT_EQ(s.changes(), 0u);
  EXPECT_LE(s.gap(), 200ms);
}

TEST_P(Groups, ThePreferredPeerTakesOverAgainWhenItHasBeenWellForSomeTime) {
  Pair s(GetParam());
  s.start();
  s.cut(true, "a");
  EXPECT_LE(s.gap(), 1s);
  ASSERT_EQ(s.used(), "b");
  s.cut(false, "a");
  s.pingFor(kReturnAfter - 500ms);
  EXPECT_EQ(s.used(), "b");
  s.answers.clear();
  s.pingFor(4s);
  EXPECT_EQ(s.used(), "a");
  EXPECT_GE(s.answers.size(), 195u) << "nobody notices";
  EXPECT_EQ(s.edge.countEvents(Event::Kind::kPeerInUse), 1u);
}

TEST_P(Groups, WhoFailsAgainAndAgainWaitsLonger) {
  Pair s(GetParam());
  s.start();
  auto failAndMend = [&] {
    s.cut(true, "a");
    s.gap();
    EXPECT_EQ(s.used(), "b");
    s.cut(false, "a");
    Time mended = s.world.now();
    while (s.used() == "b" && s.world.now() - mended < 60s) s.pingFor(100ms);
    return s.world.now() - mended;
  };
  Duration first = failAndMend();
  EXPECT_GE(first, kReturnAfter);
  EXPECT_LE(first, kReturnAfter + 4s);
  EXPECT_GE(failAndMend(), 2 * kReturnAfter);
  EXPECT_GE(failAndMend(), 4 * kReturnAfter);
}

TEST_P(Groups, AConnectionStaysWhereItIsWhenThePreferredPeerTakesOverAgain) {
  Pair s(GetParam());
  s.start();
  s.cut(true, "a");
  s.gap();
  ASSERT_EQ(s.segment(5000), &s.b);
  s.cut(false, "a");
  s.pingFor(kReturnAfter + 4s);
  ASSERT_EQ(s.used(), "a");
  EXPECT_EQ(s.segment(5000), &s.b);
  EXPECT_EQ(s.segment(5001), &s.a);
  s.cut(true, "b");
  for (int i = 0; i < 20 && s.segment(5000) != &s.a; ++i) {
  }
  EXPECT_EQ(s.segment(5000), &s.a) << "its peer does not answer any more";
}

TEST_P(Groups, APeerThatIsNeverThereHoldsNobodyUp) {
  Pair s(GetParam());
  s.cut(true, "a");
  s.start(2s);
  EXPECT_EQ(s.used(), "b");
  EXPECT_LE(s.gap(), 200ms);
}

TEST_P(Groups, TheFirstPeerIsWaitedForAtTheStart) {
  Pair s(GetParam());
  for (const auto& path : s.world.paths())
    if (path->name().ends_with("a"))
      path->change([](LinkOptions& o) { o.delay += 40ms; }, s.world.now());
  s.start();
  EXPECT_EQ(s.used(), "a");
  EXPECT_EQ(s.changes(), 0u);
}

TEST_P(Groups, WhenAllAreGoneTheFirstThatComesBackIsUsed) {
  Pair s(GetParam());
  s.start();
  ASSERT_TRUE(s.a.stop());
  ASSERT_TRUE(s.b.stop());
  s.pingFor(5s);
  s.b.start();
  EXPECT_LE(s.gap(15s), 12s);
  EXPECT_EQ(s.used(), "b");
}

TEST_P(Groups, ChangedSettingsLeaveThePeerInUse) {
  Pair s(GetParam());
  s.start();
  s.cut(true, "a");
  s.gap();
  s.cut(false, "a");
  s.edge.peers[0].keepalive = 5s;
  s.edge.tunnel().setPeers(s.edge.peers, s.edge.clock());
  EXPECT_EQ(s.used(), "b");
  s.pingFor(kReturnAfter - 1s);
  EXPECT_EQ(s.used(), "b");
  // When the hub in use fails, the other replaces it.
  s.edge.peers.pop_back();
  s.edge.tunnel().setPeers(s.edge.peers, s.edge.clock());
  EXPECT_LE(s.gap(), 2s);
  EXPECT_EQ(s.used(), "a");
}

TEST_P(Groups, StreamsOfADeadPeerAreResetAtOnce) {
  Pair s(GetParam(), true);
  std::vector<StreamEvent> events;
  s.edge.onStream = [&](const StreamEvent& e) { events.push_back(e); };
  s.start();
  StreamEnds ends{{s.edge.host(), 5000}, {address(kServer), 80}};
  StreamHandle stream = s.edge.streams().open(ends, s.edge.clock());
  ASSERT_TRUE(stream);
  s.world.run(500ms);
  ASSERT_TRUE(s.a.stop());
  s.pingFor(1s);
  bool reset = std::any_of(events.begin(), events.end(), [&](const StreamEvent& e) {
    return e.stream == stream && e.reset.has_value();
  });
  EXPECT_TRUE(reset);
  EXPECT_TRUE(
      s.edge.streams().open({{s.edge.host(), 5001}, {address(kServer), 80}}, s.edge.clock()))
      << "by the other one";
}

}  // namespace
}  // namespace braid::sim::groups_test
