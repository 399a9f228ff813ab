// Hosts behind an edge with addresses that the hub did not give to the edge: public IPv6 addresses
// of its LAN, for example.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <vector>

#include "inet/icmp.h"
#include "inet/ip.h"
#include "tests/sim/scenario.h"

namespace braid::sim::foreign_source_test {
namespace {

/// An edge that routes everything to the hub, and what comes out of its device.
struct Edge {
  Scenario s{1};
  std::vector<Bytes> seen;
  uint64_t dropped = 0;

  Edge() {
    s.path("dsl", kDsl);
    s.edge.peers[0].prefixes = {*Prefix::parse("0.0.0.0/0"), *Prefix::parse("::/0")};
    s.edge.tap = [this](ByteView b) {
      seen.emplace_back(b.begin(), b.end());
      return true;
    };
    s.start().run(500ms);
    dropped = s.hub.drops(Drop::kForeignSource);
  }
  /// Sends a datagram, and waits for a little more than a round trip.
  void ask(const char* from, const char* to) {
    IpFields ip{address(from), address(to), ip::kUdp, Ecn::kNotEct, true};
    s.edge.send(udpPacket(ip, 1234, 53, Bytes(30)));
    s.run(25ms);
  }
  uint64_t drops() const { return s.hub.drops(Drop::kForeignSource) - dropped; }
};

TEST(ForeignSource, IsAnsweredWithinARoundTrip) {
  Edge edge;
  struct Row {
    const char *from, *to;
    uint8_t type, code;
  };
  for (const Row& row :
       {Row{"2001:db8:5::7", "2001:db8:9::1", 1, 5}, Row{"203.0.113.77", "198.51.100.9", 3, 13}}) {
    edge.seen.clear();
    edge.ask(row.from, row.to);
    ASSERT_EQ(edge.seen.size(), 1u) << row.from;
    ByteView error = edge.seen[0];
    std::optional<InnerPacket> ip = parseInnerPacket(error);
    ASSERT_TRUE(ip);
    EXPECT_EQ(ip->src, address(row.to));
    EXPECT_EQ(ip->dst, address(row.from));
    EXPECT_EQ(error[ip->l4Offset], row.type) << "destination unreachable";
    EXPECT_EQ(error[ip->l4Offset + 1], row.code) << "because of the source";
  }
  EXPECT_EQ(edge.drops(), 2u);
  EXPECT_EQ(edge.s.hub.unclaimed, 0u);
}

TEST(ForeignSource, OfTheHubsOwnSideOfALinkOrForASpecialDestinationIsNot) {
  Edge edge;
  edge.s.hub.tunnel().setLocalNetworks({*Prefix::parse("10.2.0.0/16")});
  edge.ask("10.2.0.9", "198.51.100.9");
  edge.ask("fe80::7", "2001:db8:9::1");
  edge.ask("127.0.0.1", "198.51.100.9");
  edge.ask("169.254.7.7", "198.51.100.9");
  edge.ask("203.0.113.77", "169.254.169.254");
  EXPECT_EQ(edge.drops(), 5u);
  EXPECT_TRUE(edge.seen.empty());
}

/// The two sides of a tunnel, each with a router whose address is in no prefix of the other's, and
/// what comes out of their devices.
struct Routers {
  static constexpr uint8_t kIcmpV4TimeExceeded = 11, kIcmpV6TimeExceeded = 3;
  Scenario s{1};
  std::map<const Node*, std::vector<Bytes>> seen;

  Routers() {
    s.path("dsl", kDsl);
    for (Node* node : {&s.edge, &s.hub}) {
      node->tap = [this, node](ByteView b) {
        seen[node].emplace_back(b.begin(), b.end());
        return true;
      };
    }
    s.start().run(500ms);
  }
  Node& other(Node& node) { return &node == &s.edge ? s.hub : s.edge; }
  static Address router(bool v6) { return address(v6 ? "2001:db8:77::1" : "172.31.0.1"); }
  /// A datagram from a host behind the node to one behind the other one.
  Bytes datagram(Node& from, bool v6, uint16_t port = 33434) {
    IpFields ip{from.host(v6), other(from).host(v6), ip::kUdp, Ecn::kNotEct, true};
    return udpPacket(ip, 1234, port, Bytes(1000));
  }
  /// The error of a router about this packet: too big, or of another type.
  Bytes errorAbout(const Bytes& packet, std::optional<uint8_t> type = {},
                   std::optional<Address> from = {}) {
    bool v6 = ip::version(packet.data()) == 6;
    Packet made = buildTooBig(s.hub.pool(), packet, 1300);
    Bytes error(made.view().begin(), made.view().end());
    std::ranges::copy(from.value_or(router(v6)).view(), error.begin() + (v6 ? 8 : 12));
    if (type) error[v6 ? 40 : 20] = *type;
    return error;
  }
  /// Whether what a host or router behind the node sends comes out at the other side; false: it was
  /// dropped for its source.
  bool passes(Node& from, const Bytes& packet) {
    Node& to = other(from);
    uint64_t dropped = to.drops(Drop::kForeignSource);
    seen[&to].clear();
    from.send(packet);
    s.run(25ms);
    bool passed = seen[&to] == std::vector<Bytes>{packet};
    EXPECT_EQ(to.drops(Drop::kForeignSource) - dropped, passed ? 0u : 1u);
    return passed;
  }
};

TEST(RouterErrors, AboutALiveFlowPassWhateverTheRoutersAddress) {
  for (bool v6 : {false, true}) {
    Routers r;
    for (Node* host : {&r.s.edge, &r.s.hub}) {
      Node& far = r.other(*host);
      Bytes question = r.datagram(*host, v6);
      ASSERT_TRUE(r.passes(*host, question));
      EXPECT_TRUE(r.passes(far, r.errorAbout(question))) << "too big";
      uint8_t exceeded = v6 ? Routers::kIcmpV6TimeExceeded : Routers::kIcmpV4TimeExceeded;
      EXPECT_TRUE(r.passes(far, r.errorAbout(question, exceeded)));
    }
  }
}

TEST(RouterErrors, ThatQuoteALittleOnlyPassToo) {
  Routers r;
  Bytes question = r.datagram(r.s.edge, false);
  ASSERT_TRUE(r.passes(r.s.edge, question));
  Bytes error = r.errorAbout(question);
  error.resize(20 + 8 + 20 + 8);  // RFC 792: the header and 64 bits
  store16(&error[2], static_cast<uint16_t>(error.size()));
  EXPECT_TRUE(r.passes(r.s.hub, error));
}

TEST(RouterErrors, OfAnEchoRequestPass) {
  for (bool v6 : {false, true}) {
    Routers r;
    IpFields ip{r.s.edge.host(v6), r.s.hub.host(v6), v6 ? ip::kIcmpV6 : ip::kIcmp, Ecn::kNotEct,
                true};
    Bytes question = echoPacket(ip, false, 7, 1, Bytes(1000));
    ASSERT_TRUE(r.passes(r.s.edge, question));
    EXPECT_TRUE(r.passes(r.s.hub, r.errorAbout(question)));
  }
}

TEST(RouterErrors, WithoutAFlowOrOfAnotherTypeAreForeign) {
  for (bool v6 : {false, true}) {
    Routers r;
    Node &edge = r.s.edge, &hub = r.s.hub;
    Bytes question = r.datagram(edge, v6);
    ASSERT_TRUE(r.passes(edge, question));
    EXPECT_FALSE(r.passes(hub, r.errorAbout(r.datagram(edge, v6, 33435)))) << "of no flow";
    EXPECT_FALSE(r.passes(edge, r.errorAbout(r.datagram(hub, v6)))) << "nor the other way";
    for (unsigned type = 0; type < 256; ++type) {
      bool passes = v6 ? type == 2 || type == 3 : type == 3 || type == 11;
      EXPECT_EQ(r.passes(hub, r.errorAbout(question, static_cast<uint8_t>(type))), passes) << type;
    }
    Bytes unreachable = r.errorAbout(question);
    unreachable[v6 ? 40 : 20] = v6 ? 1 : 3;
    unreachable[v6 ? 41 : 21] = 1;
    EXPECT_FALSE(r.passes(hub, unreachable));
    Bytes elsewhere = r.errorAbout(question);
    elsewhere[v6 ? 39 : 19] ^= 1;
    EXPECT_FALSE(r.passes(hub, elsewhere)) << "not to the sender of what it quotes";
    Bytes cut = r.errorAbout(question);
    cut.resize(v6 ? 40 + 8 + 40 : 20 + 8 + 20);
    store16(&cut[v6 ? 4 : 2], static_cast<uint16_t>(cut.size() - (v6 ? 40 : 0)));
    EXPECT_FALSE(r.passes(hub, cut)) << "without the ports";
  }
}

TEST(RouterErrors, OfThisSidesOwnAddressesOrSpecialOnesAreForeign) {
  Routers r;
  r.s.edge.tunnel().setLocalNetworks({*Prefix::parse("172.31.0.0/24")});
  Bytes question = r.datagram(r.s.edge, false);
  ASSERT_TRUE(r.passes(r.s.edge, question));
  for (const char* source : {"172.31.0.1", "127.0.0.1", "169.254.1.1", "224.0.0.1", "0.0.0.0"})
    EXPECT_FALSE(r.passes(r.s.hub, r.errorAbout(question, {}, address(source)))) << source;
  EXPECT_TRUE(r.passes(r.s.hub, r.errorAbout(question, {}, address("172.31.1.1"))));
}

TEST(RouterErrors, AboutWhatIsNotThePeersAreForeign) {
  Routers r;
  r.s.edge.peers[0].prefixes.push_back(*Prefix::parse("10.77.0.0/16"));
  r.s.edge.tunnel().setPeers(r.s.edge.peers, r.s.world.now());
  Bytes question = r.datagram(r.s.edge, false);
  std::ranges::copy(address("10.77.0.1").view(), question.begin() + 16);
  r.s.edge.send(question);
  r.s.run(25ms);
  EXPECT_TRUE(r.passes(r.s.hub, r.errorAbout(question)));
  r.s.edge.peers[0].prefixes.pop_back();
  r.s.edge.tunnel().setPeers(r.s.edge.peers, r.s.world.now());
  EXPECT_FALSE(r.passes(r.s.hub, r.errorAbout(question)))
      << "its destination is not the peer's now";
}

TEST(RouterErrors, OfAPeerAreRationed) {
  Routers r;
  Bytes question = r.datagram(r.s.edge, false);
  ASSERT_TRUE(r.passes(r.s.edge, question));
  Bytes error = r.errorAbout(question);
  r.seen[&r.s.edge].clear();
  uint64_t before = r.s.edge.drops(Drop::kForeignSource);
  for (int i = 0; i < 2000; ++i) {
    r.s.hub.send(error);
    r.s.run(1ms);
  }
  r.s.run(100ms);
  size_t passed = r.seen[&r.s.edge].size();
  EXPECT_GE(passed, 350u);
  EXPECT_LE(passed, 450u) << "200 at once and then 100 a second";
  EXPECT_EQ(r.s.edge.drops(Drop::kForeignSource) - before, 2000 - passed);
}

}  // namespace
}  // namespace braid::sim::foreign_source_test
