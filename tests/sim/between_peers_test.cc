// Whether the peers of a hub reach each other through it.

#include <gtest/gtest.h>

#include "inet/ip.h"
#include "tests/sim/scenario.h"

namespace braid::sim::between_peers_test {
namespace {

/// A hub and two edges, each of which routes everything to it.
struct Star {
  World world{1};
  Node& hub;
  Node& first;
  Node& second;
  std::map<const Node*, std::vector<Bytes>> seen;

  explicit Star(bool betweenPeers, const std::string& group = "")
      : hub(world.addNode("hub", optionsOf(betweenPeers))),
        first(world.addNode("first", optionsOf(false))),
        second(world.addNode("second", optionsOf(false))) {
    for (Node* edge : {&first, &second}) {
      world.pair(*edge, hub);
      world.join(*edge, hub, edge->name(), kDsl, kDsl);
      edge->peers[0].prefixes = {*Prefix::parse("0.0.0.0/0"), *Prefix::parse("::/0")};
    }
    for (PeerOptions& p : hub.peers) p.group = group;
    for (Node* node : {&hub, &first, &second}) {
      node->tap = [this, node](ByteView b) {
        seen[node].emplace_back(b.begin(), b.end());
        return true;
      };
    }
    world.start();
    world.run(1s);
  }
  static TunnelOptions optionsOf(bool betweenPeers) {
    TunnelOptions options;
    options.betweenPeers = betweenPeers;
    options.streams.on = true;
    return options;
  }
  void ask(Node& from, const Address& to) {
    IpFields ip{from.host(to.isV6()), to, ip::kUdp, Ecn::kNotEct, true};
    from.send(udpPacket(ip, 1234, 53, Bytes(30)));
    world.run(200ms);
  }
};

TEST(BetweenPeers, ByDefaultNoPacketGoesFromOneEdgeToAnother) {
  EXPECT_FALSE(TunnelOptions{}.betweenPeers);
  for (bool v6 : {false, true}) {
    Star s(false);
    s.ask(s.first, s.second.host(v6));
    EXPECT_TRUE(s.seen[&s.hub].empty()) << "its routes would lead to the second edge";
    EXPECT_EQ(s.hub.drops(Drop::kBetweenPeers), 1u);
    ASSERT_EQ(s.seen[&s.first].size(), 1u);
    ByteView error = s.seen[&s.first][0];
    std::optional<InnerPacket> ip = parseInnerPacket(error);
    ASSERT_TRUE(ip);
    EXPECT_EQ(ip->dst, s.first.host(v6));
    ByteView message = error.subspan(ip->l4Offset);
    EXPECT_EQ(message[0], v6 ? 1 : 3) << "destination unreachable";
    EXPECT_EQ(message[1], v6 ? 1 : 13) << "administratively prohibited";
  }
}

TEST(BetweenPeers, TheHubAndTheHostsBehindItAreReached) {
  Star s(false);
  s.ask(s.first, s.hub.host());
  s.ask(s.first, address("203.0.113.9"));
  EXPECT_EQ(s.seen[&s.hub].size(), 2u);
  s.ask(s.hub, s.second.host());
  EXPECT_EQ(s.seen[&s.second].size(), 1u);
  EXPECT_EQ(s.hub.drops(Drop::kBetweenPeers), 0u);
}

TEST(BetweenPeers, TheConfigurationMayAllowIt) {
  Star s(true);
  s.ask(s.first, s.second.host());
  EXPECT_EQ(s.seen[&s.hub].size(), 1u) << "its routes lead to the second edge";
  EXPECT_TRUE(s.seen[&s.first].empty());
}

// Two gateways of one site replace each other: a packet may come by one of them for what is behind
// the other.
TEST(BetweenPeers, PeersOfAGroupAreOneSite) {
  Star s(false, "site");
  s.ask(s.first, s.second.host());
  EXPECT_EQ(s.seen[&s.hub].size(), 1u);
}

// Two peers send from addresses that the hub did not give to them; the first one invents a host for
// each packet.
TEST(BetweenPeers, APeerDoesNotUseUpTheIcmpErrorsOfAnother) {
  Star s(false);
  auto send = [&](Node& from, const Address& source) {
    IpFields ip{source, address("198.51.100.9"), ip::kUdp, Ecn::kNotEct, true};
    from.send(udpPacket(ip, 1234, 53, Bytes(30)));
  };
  Address invented = address("203.0.0.0");
  for (unsigned i = 0; i < 10; ++i) {
    for (unsigned ms = 0; ms < 100; ++ms) {
      for (unsigned n = 0; n < 5; ++n) {
        unsigned host = (i * 100 + ms) * 5 + n;
        invented.bytes[2] = static_cast<uint8_t>(host >> 8);
        invented.bytes[3] = static_cast<uint8_t>(host);
        send(s.first, invented);
      }
      s.world.run(1ms);
    }
    send(s.second, address("192.0.2.77"));
  }
  s.world.run(200ms);
  EXPECT_EQ(s.seen[&s.second].size(), 10u);
  EXPECT_GE(s.hub.drops(Drop::kForeignSource), 5000u);
  EXPECT_LE(s.seen[&s.first].size(), 50u + 110u) << "a burst, and 100 a second";
  EXPECT_GE(s.seen[&s.first].size(), 100u);
}

TEST(BetweenPeers, TheSameHoldsForStreams) {
  for (bool allowed : {false, true}) {
    Star s(allowed);
    std::vector<StreamEvent> atFirst, atHub;
    s.first.onStream = [&](const StreamEvent& e) { atFirst.push_back(e); };
    s.hub.onStream = [&](const StreamEvent& e) { atHub.push_back(e); };
    StreamEnds ends{{s.first.host(), 5000}, {s.second.host(), 80}};
    ASSERT_TRUE(s.first.streams().open(ends, s.first.clock()));
    s.world.run(500ms);
    EXPECT_EQ(atHub.empty(), !allowed);
    bool refused = std::ranges::any_of(
        atFirst, [](const StreamEvent& e) { return e.reset == StreamCause::kForbidden; });
    EXPECT_EQ(refused, !allowed);
  }
}

}  // namespace
}  // namespace braid::sim::between_peers_test
