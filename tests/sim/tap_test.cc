// TAP: Ethernet between sites.

#include <gtest/gtest.h>

#include <algorithm>

#include "inet/frame.h"
#include "inet/icmp.h"
#include "inet/ip.h"
#include "tests/sim/scenario.h"

namespace braid::sim::tap_test {
namespace {

MacAddress mac(unsigned site) {
  return {2, 0, 0, 0, 0, static_cast<uint8_t>(site)};
}
constexpr MacAddress kBroadcast{255, 255, 255, 255, 255, 255};

/// A frame with an unknown EtherType, or of IP when `payload` is an IP packet.
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

/// An ARP reply in which `sender` says that it is at `from`.
Bytes arp(const MacAddress& to, const MacAddress& from, const char* sender) {
  Bytes b{0, 1, 8, 0, 6, 4, 0, 2};
  auto add = [&](ByteView bytes) { b.insert(b.end(), bytes.begin(), bytes.end()); };
  add(from), add(address(sender).view());
  add(to), add(address("192.168.0.2").view());
  return frame(to, from, Frame::kArp, b);
}

/// A packet of neighbour discovery about `target`, from a link-local address.
Bytes discovery(const MacAddress& from, uint8_t type, const char* target) {
  Bytes b{0x60, 0, 0, 0, 0, 24, 58, 255};
  auto add = [&](ByteView bytes) { b.insert(b.end(), bytes.begin(), bytes.end()); };
  add(address("fe80::9").view()), add(address("ff02::1").view());
  add(Bytes{type, 0, 0, 0, 0, 0, 0, 0});
  add(address(target).view());
  return frame({0x33, 0x33, 0, 0, 0, 1}, from, Frame::kIpV6, b);
}

/// Sites from number 1 on, each joined to the hub. The edges allow all EtherTypes, the hub the
/// usual ones and one more.
struct Sites {
  World world{1};
  std::vector<Node*> nodes;
  std::map<const Node*, std::vector<Bytes>> seen;

  /// `betweenPeers`: the edges reach each other through the hub.
  explicit Sites(unsigned edges, bool betweenPeers = true) {
    TunnelOptions options;
    options.mode = TunnelOptions::Mode::kTap;
    options.betweenPeers = betweenPeers;
    options.bridge.etherTypes.push_back(0x88b5);
    nodes.push_back(&world.addNode("hub", options));
    options.bridge.allTypes = options.bridge.spanningTree = true;
    options.bridge.floodLimit = 1'000'000;
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
  uint64_t drops(Drop cause) { return nodes[0]->drops(cause); }
  /// The source addresses that the hub's first peer may use, and those that are never allowed.
  void setPrefixes(const std::vector<const char*>& prefixes,
                   const std::vector<const char*>& own = {}) {
    std::vector<Prefix> local;
    nodes[0]->peers[0].prefixes.clear();
    for (const char* p : prefixes) nodes[0]->peers[0].prefixes.push_back(*Prefix::parse(p));
    for (const char* p : own) local.push_back(*Prefix::parse(p));
    nodes[0]->tunnel().setPeers(nodes[0]->peers, world.now());
    nodes[0]->tunnel().setLocalNetworks(local);
  }
  /// True when the hub's device got the frame; false when the hub dropped it with this cause.
  bool passes(const Bytes& b, Drop otherwise) {
    size_t before = count(0);
    uint64_t dropped = drops(otherwise);
    send(1, b);
    bool passed = count(0) > before;
    EXPECT_EQ(drops(otherwise) - dropped, passed ? 0u : 1u);
    return passed;
  }
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

// Hosts in two VLANs may have the same addresses, by which the shim identifies flows.
TEST(Tap, TheShimLooksAtUntaggedFramesOnly) {
  Sites s(1);
  TcpSegment segment;
  segment.sport = 1000, segment.dport = 80, segment.flags = TcpFields::kSyn;
  Bytes syn = tcpPacket({address("10.9.0.1"), address("10.9.0.2"), ip::kTcp}, segment);
  auto halfOpen = [&](size_t node) { return s.nodes[node]->status().shim.counters.halfOpen; };
  s.send(1, frame(mac(1), mac(2), Frame::kIpV4, syn, 7));
  EXPECT_EQ(s.count(0), 1u);
  EXPECT_EQ(halfOpen(1) + halfOpen(0), 0u);
  s.send(1, frame(mac(1), mac(2), Frame::kIpV4, syn));
  EXPECT_EQ(s.count(0), 2u);
  EXPECT_EQ(halfOpen(1), 1u);
  EXPECT_EQ(halfOpen(0), 1u);
}

TEST(Tap, BroadcastReachesAllThreeSitesOnceAndIsNotReturned) {
  Sites s(3);
  s.send(1, frame(kBroadcast, mac(1), 0x88b5, Bytes(60)));
  EXPECT_EQ(s.count(0), 1u);
  EXPECT_EQ(s.count(1), 0u);
  EXPECT_EQ(s.count(2), 1u);
  EXPECT_EQ(s.count(3), 1u);
}

TEST(Tap, SitesReachEachOtherOnlyIfTheHubSaysSo) {
  Sites s(3, false);
  s.send(2, frame(kBroadcast, mac(2), 0x88b5, Bytes(60)));
  s.send(0, frame(kBroadcast, mac(7), 0x88b5, Bytes(60)));
  EXPECT_EQ(s.count(0), 1u);
  EXPECT_EQ(s.count(1) + s.count(2), 2u) << "the hub's own LAN reaches all";
  EXPECT_EQ(s.count(3), 1u);
  s.seen.clear();
  s.send(1, frame(mac(2), mac(1), 0x88b5, Bytes(60)));
  EXPECT_EQ(s.drops(Drop::kBetweenPeers), 1u);
  s.send(1, frame(mac(99), mac(1), 0x88b5, Bytes(60)));
  EXPECT_EQ(s.count(0), 1u) << "nobody knows that address: it may be in the hub's LAN";
  EXPECT_EQ(s.count(2) + s.count(3), 0u);
  s.send(1, frame(mac(7), mac(1), 0x88b5, Bytes(60)));
  EXPECT_EQ(s.count(0), 2u);
  Bytes ping = echoPacket({address("10.9.0.1"), address("10.9.0.2"), ip::kIcmp}, false, 1, 1, {});
  s.send(1, frame(mac(2), mac(1), Frame::kIpV4, ping));
  ASSERT_EQ(s.count(1), 1u);
  std::optional<Frame> answer = parseFrame(s.seen[s.nodes[1]][0]);
  ASSERT_TRUE(answer && answer->ip);
  EXPECT_EQ(answer->dst, mac(1));
  EXPECT_EQ(answer->ip->protocol, ip::kIcmp) << "administratively prohibited";
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
      s.send(0, frame(kBroadcast, mac(9), 0x88b5, Bytes(60)));  // the host has moved behind the hub
      s.seen.clear();
      s.send(2, frame(mac(9), mac(2), 0x88b5, Bytes(60)));
      EXPECT_EQ(s.count(0), 1u) << "at once";
    }
    s.world.run(301s);  // the entry for its old place has expired
    s.seen.clear();
    s.send(1, frame(mac(9), mac(1), 0x88b5, Bytes(60)));
    EXPECT_EQ(s.count(0), 1u) << speaks;
    s.send(2, frame(mac(9), mac(2), 0x88b5, Bytes(60)));
    EXPECT_EQ(s.count(0), 2u) << speaks;
  }
}

TEST(Tap, APeerDoesNotTakeAStationsAddress) {
  Sites s(2);
  s.send(0, frame(kBroadcast, mac(7), 0x88b5, Bytes(60)));
  s.send(2, frame(kBroadcast, mac(2), 0x88b5, Bytes(60)));
  for (unsigned victim : {7u, 2u}) {
    s.seen.clear();
    uint64_t before = s.drops(Drop::kMacTaken);
    s.send(1, frame(kBroadcast, mac(victim), 0x88b5, Bytes(60)));
    EXPECT_EQ(s.count(0) + s.count(2), 0u) << "the host's own bridge must not learn it either";
    EXPECT_EQ(s.drops(Drop::kMacTaken), before + 1);
  }
  s.seen.clear();
  s.send(2, frame(mac(7), mac(2), 0x88b5, Bytes(60)));
  s.send(0, frame(mac(2), mac(7), 0x88b5, Bytes(60)));
  EXPECT_EQ(s.count(0), 1u);
  EXPECT_EQ(s.count(1), 0u) << "who claimed them gets nothing";
  EXPECT_EQ(s.count(2), 1u);
}

TEST(Tap, AStationOfTheLanIsNotFloodedToOtherSites) {
  Sites s(3);
  s.send(0, frame(kBroadcast, mac(7), 0x88b5, Bytes(60)));
  s.seen.clear();
  s.send(1, frame(mac(7), mac(1), 0x88b5, Bytes(60)));
  EXPECT_EQ(s.count(0), 1u);
  EXPECT_EQ(s.count(2) + s.count(3), 0u);
}

TEST(Tap, AStormOfOneSiteIsBounded) {
  Sites s(3);
  s.send(2, frame(kBroadcast, mac(2), 0x88b5, Bytes(60)));
  for (const MacAddress& to : {kBroadcast, MacAddress{1, 0, 0x5e, 0, 0, 9}, mac(200)}) {
    s.world.run(1s);
    s.seen.clear();
    uint64_t dropped = s.drops(Drop::kFloodLimit);
    constexpr size_t kStorm = 2000;
    for (size_t i = 0; i < kStorm; ++i) s.nodes[1]->send(frame(to, mac(1), 0x88b5, Bytes(60)));
    s.world.run(500ms);
    EXPECT_GE(s.count(3), 250u);
    EXPECT_LE(s.count(3), 250u + 500u);
    EXPECT_EQ(s.count(2), s.count(3));
    EXPECT_GE(s.drops(Drop::kFloodLimit) - dropped, kStorm - 750);
    if (to == mac(200)) {
      EXPECT_GE(s.count(0), kStorm * 9 / 10) << "it may be here, and makes no more than one of one";
    } else {
      EXPECT_EQ(s.count(0), s.count(3));
    }
    s.seen.clear();
    s.send(1, frame(mac(2), mac(1), 0x88b5, Bytes(60)));
    EXPECT_EQ(s.count(2), 1u) << "what is for one host goes on";
    s.send(3, frame(kBroadcast, mac(3), 0x88b5, Bytes(60)));
    EXPECT_EQ(s.count(1), 1u) << "so do the other sites";
  }
}

// Unless sites reach each other, a frame to an unknown address goes to the hub's LAN only: it is
// not many frames, and leaves the site its broadcasts.
TEST(Tap, WhatGoesToOnePortIsNoStorm) {
  Sites s(3, false);
  constexpr size_t kFrames = 2000;
  for (size_t i = 0; i < kFrames; ++i) s.nodes[1]->send(frame(mac(200), mac(1), 0x88b5, Bytes(60)));
  s.nodes[1]->send(frame(kBroadcast, mac(1), 0x88b5, Bytes(60)));
  s.world.run(500ms);
  EXPECT_GE(s.count(0), kFrames * 9 / 10);
  EXPECT_EQ(s.drops(Drop::kFloodLimit), 0u);
  EXPECT_EQ(s.count(2) + s.count(3), 0u);
}

TEST(Tap, OnlyWhatTheListNamesIsBridged) {
  Sites s(1);
  EXPECT_TRUE(s.passes(frame(mac(9), mac(1), 0x88b5, Bytes(60)), Drop::kNotBridged));
  for (uint16_t type : {0x8863, 0x8847, 0x0026})
    EXPECT_FALSE(s.passes(frame(mac(9), mac(1), type, Bytes(60)), Drop::kNotBridged)) << type;
  uint64_t before = s.drops(Drop::kNotBridged);
  s.send(0, frame(mac(1), mac(7), 0x8863, Bytes(60)));
  EXPECT_EQ(s.drops(Drop::kNotBridged), before + 1) << "nor does it leave";
  EXPECT_EQ(s.count(1), 0u);
}

TEST(Tap, StpAndLldpOfTheLanStayThere) {
  Sites s(1);
  const MacAddress bridges{0x01, 0x80, 0xc2, 0, 0, 0}, neighbours{0x01, 0x80, 0xc2, 0, 0, 14};
  EXPECT_FALSE(s.passes(frame(bridges, mac(1), 0x0026, Bytes(60)), Drop::kNotBridged))
      << "the edge lets it out";
  s.send(0, frame(bridges, mac(7), 0x0026, Bytes(60)));
  s.send(0, frame(neighbours, mac(7), 0x88cc, Bytes(60)));
  s.send(1, frame(neighbours, mac(1), 0x88cc, Bytes(60)));
  EXPECT_EQ(s.count(0) + s.count(1), 0u);
}

TEST(Tap, AFrameFromNobodyIsNone) {
  Sites s(1);
  s.send(1, frame(mac(9), kBroadcast, 0x88b5, Bytes(60)));
  s.send(1, frame(mac(9), {}, 0x88b5, Bytes(60)));
  EXPECT_EQ(s.nodes[1]->drops(Drop::kBadInnerPacket), 2u);
  EXPECT_EQ(s.count(0), 0u);
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
    std::vector<Bytes> bad = {
        frame(mac(9), mac(1), Frame::kIpV4, cut),      frame(mac(9), mac(1), Frame::kIpV4, cut, 7),
        frame(mac(9), mac(1), Frame::kIpV6, foreign),  frame(mac(9), mac(1), Frame::kIpV4, {}),
        frame(mac(9), mac(1), Frame::kArp, Bytes(27)),
    };
    for (const Bytes& b : bad) s.send(1, b);
    EXPECT_EQ(drops(Drop::kBadInnerPacket), prefixes ? bad.size() : 0u);
    s.send(1, frame(mac(9), mac(1), 0x88b5, cut));
    EXPECT_EQ(s.count(0), prefixes ? 2u : 3 + bad.size()) << "what the list names besides passes";
    Bytes threeTags{0, 7, 0x81, 0, 0, 7, 0x81, 0, 0, 7, 8, 0};
    threeTags.insert(threeTags.end(), foreign.begin(), foreign.end());
    EXPECT_FALSE(s.passes(frame(mac(9), mac(1), Frame::kVlan, threeTags), Drop::kNotBridged));
  }
}

TEST(Tap, ARoutersErrorAboutALiveFlowPassesFromAPeerWithPrefixes) {
  Sites s(1);
  s.setPrefixes({"192.168.0.0/24", "192.168.7.0/24"});
  IpFields ip{address("192.168.0.2"), address("192.168.7.1"), ip::kUdp, Ecn::kNotEct, true};
  Bytes question = udpPacket(ip, 5, 6, Bytes(20));
  Packet made = buildTooBig(s.nodes[0]->pool(), question, 1300);
  Bytes error(made.view().begin(), made.view().end());
  std::ranges::copy(address("172.31.0.1").view(), error.begin() + 12);
  auto passes = [&] {
    return s.passes(frame(mac(9), mac(1), Frame::kIpV4, error), Drop::kForeignSource);
  };
  EXPECT_FALSE(passes()) << "before there is a flow";
  s.send(0, frame(mac(1), mac(9), Frame::kIpV4, question));
  ASSERT_EQ(s.count(1), 1u);
  EXPECT_TRUE(passes());
}

TEST(Tap, AddressesInArpAndNeighbourDiscoveryAreChecked) {
  constexpr uint8_t kSolicitation = 135, kAdvertisement = 136, kRouter = 134, kRedirect = 137;
  Sites s(1);
  auto passes = [&](const Bytes& b) { return s.passes(b, Drop::kForeignSource); };
  s.setPrefixes({"192.168.0.0/24", "fd00:1::/32"});
  EXPECT_TRUE(passes(arp(mac(9), mac(1), "192.168.0.1")));
  EXPECT_FALSE(passes(arp(mac(9), mac(1), "192.168.1.1")));
  EXPECT_TRUE(passes(discovery(mac(1), kAdvertisement, "fd00:1::5")));
  EXPECT_TRUE(passes(discovery(mac(1), kAdvertisement, "fe80::5")));
  EXPECT_FALSE(passes(discovery(mac(1), kAdvertisement, "fd00:2::5"))) << "another's";
  Bytes cut = discovery(mac(1), kAdvertisement, "fd00:1::5");
  cut[14 + 5] = 8;  // the payload's length
  cut.resize(cut.size() - 16);
  EXPECT_FALSE(passes(cut)) << "it does not say whose";
  EXPECT_TRUE(passes(discovery(mac(1), kSolicitation, "fd00:2::5"))) << "who asks claims nothing";
  EXPECT_FALSE(passes(discovery(mac(1), kRouter, "::"))) << "a router for all";
  EXPECT_FALSE(passes(discovery(mac(1), kRedirect, "fd00:1::5")));
  s.setPrefixes({"192.168.0.0/24", "::/0"});
  EXPECT_TRUE(passes(discovery(mac(1), kRouter, "::")));
  s.setPrefixes({});
  EXPECT_TRUE(passes(discovery(mac(1), kAdvertisement, "fd00:2::5")));
}

// With any prefixes of a peer, and without any.
TEST(Tap, WhatIsOnThisSideIsNoPeers) {
  for (bool prefixes : {true, false}) {
    Sites s(1);
    auto passes = [&](const Bytes& b) { return s.passes(b, Drop::kForeignSource); };
    auto udp = [&](const char* from) {
      IpFields ip{address(from), address("192.168.0.2"), 17, Ecn::kNotEct, true};
      return frame(mac(9), mac(1), Frame::kIpV4, udpPacket(ip, 5, 6, Bytes(20)));
    };
    s.setPrefixes(
        prefixes ? std::vector<const char*>{"0.0.0.0/0", "::/0"} : std::vector<const char*>{},
        {"192.168.0.1/32", "10.2.0.0/16", "fd00:2::1/128", "fe80::7/128"});
    EXPECT_TRUE(passes(udp("192.168.0.3")));
    EXPECT_FALSE(passes(udp("192.168.0.1")));
    EXPECT_FALSE(passes(udp("10.2.3.4")));
    EXPECT_TRUE(passes(arp(mac(9), mac(1), "192.168.0.3")));
    EXPECT_FALSE(passes(arp(mac(9), mac(1), "192.168.0.1")));
    EXPECT_FALSE(passes(discovery(mac(1), 136, "fd00:2::1")));
    EXPECT_FALSE(passes(discovery(mac(1), 136, "fe80::7")));
    EXPECT_TRUE(passes(discovery(mac(1), 136, "fe80::8")));
  }
}

// A bridge joins links: link-local addresses pass; unassigned addresses and those of cloud metadata
// services do not.
TEST(Tap, SpecialDestinationsOfALinkPassAndOthersDoNot) {
  RecordProperty("rule", "data.destination");
  Sites s(1);
  auto passes = [&](const char* to) {
    IpFields ip{address("192.168.0.1"), address(to), 17, Ecn::kNotEct, true};
    if (ip.dst.isV6()) ip.src = address("fe80::9");
    uint16_t type = ip.dst.isV6() ? Frame::kIpV6 : Frame::kIpV4;
    return s.passes(frame(kBroadcast, mac(1), type, udpPacket(ip, 5, 6, Bytes(20))),
                    Drop::kSpecialDestination);
  };
  for (const char* to :
       {"255.255.255.255", "224.0.0.251", "169.254.7.7", "192.168.0.2", "ff02::1", "fe80::2"})
    EXPECT_TRUE(passes(to)) << to;
  for (const char* to : {"127.0.0.1", "169.254.169.254", "168.63.129.16", "::1", "fd00:ec2::254"})
    EXPECT_FALSE(passes(to)) << to;
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
