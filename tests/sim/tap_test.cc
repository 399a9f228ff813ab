// TAP: Ethernet between sites.

#include <gtest/gtest.h>

#include "inet/frame.h"
#include "tests/sim/scenario.h"

namespace braid::sim::tap_test {
namespace {

MacAddress mac(unsigned site) {
  return {2, 0, 0, 0, 0, static_cast<uint8_t>(site)};
}
constexpr MacAddress kBroadcast{255, 255, 255, 255, 255, 255};

/// A frame of a protocol that nobody knows, or of IP when `payload` is an IP packet.
Bytes frame(const MacAddress& to, const MacAddress& from, uint16_t type, const Bytes& payload,
            int vlan = -1) {
  Bytes b(to.begin(), to.end());
  b.insert(b.end(), from.begin(), from.end());
  auto word = [&](unsigned v) {
    b.push_back(static_cast<uint8_t>(v >> 8)), b.push_back(static_cast<uint8_t>(v));
  };
  if (vlan >= 0) word(Frame::kVlan), word(static_cast<unsigned>(vlan));
  word(type);
  b.insert(b.end(), payload.begin(), payload.end());
  return b;
}

/// Sites 1 and up, each joined to the hub.
struct Sites {
  World world{1};
  std::vector<Node*> nodes;
  std::map<const Node*, std::vector<Bytes>> seen;

  explicit Sites(unsigned edges) {
    TunnelOptions options;
    options.mode = TunnelOptions::Mode::kTap;
    nodes.push_back(&world.addNode("hub", options));
    for (unsigned i = 1; i <= edges; ++i) {
      Node& edge = world.addNode("edge" + std::to_string(i), options);
      nodes.push_back(&edge);
      world.pair(edge, *nodes[0]);
      world.join(edge, *nodes[0], edge.name(), kDsl, kDsl);
    }
    for (Node* n : nodes) {
      for (PeerOptions& p : n->peers) p.prefixes.clear();
      n->tap = [this, n](ByteView b) {
        seen[n].emplace_back(b.begin(), b.end());
        return true;
      };
    }
    world.start();
    world.run(1s);
  }
  void send(unsigned from, const Bytes& b) {
    nodes[from]->send(b);
    world.run(200ms);
  }
  size_t count(unsigned at) { return seen[nodes[at]].size(); }
};

TEST(Tap, FramesArriveAsTheyWereWithVlanTags) {
  Sites s(1);
  for (int vlan : {-1, 7, 4094}) {
    Bytes b = frame(mac(1), mac(2), 0x88b5, Bytes(100, 0x5a), vlan);
    s.send(1, b);
    ASSERT_FALSE(s.seen[s.nodes[0]].empty());
    EXPECT_EQ(s.seen[s.nodes[0]].back(), b);
  }
  EXPECT_EQ(s.count(0), 3u);
}

TEST(Tap, BroadcastReachesAllThreeSitesOnceAndIsNotReturned) {
  Sites s(3);
  s.send(1, frame(kBroadcast, mac(1), 0x88b5, Bytes(60)));
  EXPECT_EQ(s.count(0), 1u);
  EXPECT_EQ(s.count(1), 0u);
  EXPECT_EQ(s.count(2), 1u);
  EXPECT_EQ(s.count(3), 1u);
}

TEST(Tap, AKnownAddressIsNotFlooded) {
  Sites s(3);
  s.send(2, frame(kBroadcast, mac(2), 0x88b5, Bytes(60)));
  s.seen.clear();
  s.send(1, frame(mac(2), mac(1), 0x88b5, Bytes(60)));
  EXPECT_EQ(s.count(2), 1u);
  EXPECT_EQ(s.count(0), 0u);
  EXPECT_EQ(s.count(3), 0u);
  s.send(2, frame(mac(1), mac(2), 0x88b5, Bytes(60)));
  EXPECT_EQ(s.count(1), 1u);
}

TEST(Tap, AStationThatMovedToTheLanIsFound) {
  for (bool speaks : {true, false}) {
    Sites s(2);
    s.send(1, frame(kBroadcast, mac(9), 0x88b5, Bytes(60)));
    if (speaks) {
      s.send(0, frame(kBroadcast, mac(9), 0x88b5, Bytes(60)));  // now it is behind the hub
    } else {
      s.world.run(301s);  // what was learnt of it is too old
    }
    s.seen.clear();
    s.send(1, frame(mac(9), mac(1), 0x88b5, Bytes(60)));
    EXPECT_EQ(s.count(0), 1u) << speaks;
    s.send(2, frame(mac(9), mac(2), 0x88b5, Bytes(60)));
    EXPECT_EQ(s.count(0), 2u) << speaks;
  }
}

TEST(Tap, WhatCannotBeCheckedDoesNotPassFromAPeerWithPrefixes) {
  RecordProperty("rule", "data.packet data.source");
  for (bool prefixes : {true, false}) {
    Sites s(1);
    if (prefixes) s.nodes[0]->peers[0].prefixes = {*Prefix::parse("192.168.0.0/24")};
    s.nodes[0]->tunnel().setPeers(s.nodes[0]->peers, s.world.now());
    auto drops = [&](Drop cause) {
      return s.nodes[0]->tunnel().status(s.world.now()).drops[static_cast<size_t>(cause)];
    };
    IpFields ip{address("192.168.0.1"), address("192.168.0.2"), 17, Ecn::kNotEct, true};
    Bytes good = udpPacket(ip, 5, 6, Bytes(20));
    s.send(1, frame(mac(9), mac(1), Frame::kIpV4, good));
    ASSERT_EQ(s.count(0), 1u);

    ip.src = address("10.0.0.1");
    Bytes foreign = udpPacket(ip, 5, 6, Bytes(20));
    s.send(1, frame(mac(9), mac(1), Frame::kIpV4, foreign));
    EXPECT_EQ(drops(Drop::kForeignSource), prefixes ? 1u : 0u);

    Bytes cut = foreign;
    cut.pop_back();
    Bytes threeTags{0, 7, 0x81, 0, 0, 7, 0x81, 0, 0, 7, 8, 0};
    threeTags.insert(threeTags.end(), foreign.begin(), foreign.end());
    std::vector<Bytes> bad = {
        frame(mac(9), mac(1), Frame::kIpV4, cut),      frame(mac(9), mac(1), Frame::kIpV4, cut, 7),
        frame(mac(9), mac(1), Frame::kIpV6, foreign),  frame(mac(9), mac(1), Frame::kIpV4, {}),
        frame(mac(9), mac(1), Frame::kArp, Bytes(27)), frame(mac(9), mac(1), Frame::kVlan, threeTags),
    };
    for (const Bytes& b : bad) s.send(1, b);
    EXPECT_EQ(drops(Drop::kBadInnerPacket), prefixes ? bad.size() : 0u);
    s.send(1, frame(mac(9), mac(1), 0x88b5, cut));
    EXPECT_EQ(s.count(0), prefixes ? 2u : 3 + bad.size()) << "other protocols pass";
  }
}

TEST(Tap, TcpInATaggedFrameIsRepaired) {
  Sites s(1);
  s.world.path("edge1").change([](LinkOptions& o) { o.loss = 0.05; }, s.world.now());
  std::vector<Bytes> sent;
  IpFields ip{address("192.168.0.1"), address("192.168.0.2"), 6, Ecn::kNotEct, true};
  for (uint32_t i = 0; i < 200; ++i) {
    sent.push_back(frame(mac(1), mac(2), Frame::kIpV4,
                         tcpPacket(ip, {80, 80, i, 0, TcpFields::kAck, 100, 0, 0, Bytes(200)}), 7));
    s.nodes[1]->send(sent.back());
    s.world.run(5ms);
  }
  s.world.run(2s);
  EXPECT_EQ(s.seen[s.nodes[0]], sent);
}

}  // namespace
}  // namespace braid::sim::tap_test
