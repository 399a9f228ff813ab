// Hosts behind an edge with addresses that the hub did not give to the edge: public IPv6 addresses
// of its LAN, for example.

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace braid::sim::foreign_source_test
