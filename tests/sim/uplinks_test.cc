// Several paths of one uplink: a modem with IPv4 and IPv6, or `subflows: 2`. They fail together, so
// what is sent twice goes by another uplink the second time.

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tests/sim/scenario.h"

namespace braid::sim::uplinks_test {
namespace {

TunnelOptions with(const std::string& policy) {
  TunnelOptions o;
  o.recovery = policy;
  return o;
}

/// A fast modem with two paths and a slower one with a single path.
struct TwoModems : Scenario {
  TwoModems(uint64_t seed, const std::string& policy, bool dualStack, LinkOptions fast,
            LinkOptions slow)
      : Scenario(seed, with(policy)) {
    path("fast", fast).path("fast2", fast, dualStack).path("slow", slow);
    joinUplinks();
    start().run(2s);
    world.onWire = [this](Path& path, bool, const WireDatagram& d) {
      bool isProbe = d.bytes.size() > 1150;  // of the MTU
      if (d.bytes.size() >= 200 && !isProbe) ++sent[path.name()];
    };
  }
  void joinUplinks() {
    edge.uplinks[0].sockets.push_back(edge.uplinks[1].sockets[0]);
    edge.uplinks.erase(edge.uplinks.begin() + 1);
  }
  /// The fast modem is silent on its two paths for `silence`.
  void fastModemFails(Duration silence) {
    cut("fast").cut("fast2").run(silence);
    mend("fast").mend("fast2");
  }
  uint64_t repairsOf(const Node& node, std::string_view path) const {
    const SubflowStatus* s = subflow(node, path);
    return s ? s->retransmittedBytes : 0;
  }
  /// Copies and parities that the edge sent on its subflow of that number.
  uint64_t protection(uint8_t number) const {
    const PeerStatus peer = edge.status().peers.at(0);
    return peer.subflows.at(number).copies + peer.subflows.at(number).parities;
  }
  std::map<std::string, uint64_t> sent;  ///< datagrams with data, by path
};

class Uplinks : public testing::TestWithParam<uint64_t> {};
INSTANTIATE_TEST_SUITE_P(Seeds, Uplinks, testing::Values(1, 2, 3, 4));

const LinkOptions kFast{.rateBitsPerSecond = 50_Mbit, .delay = 10ms};
const LinkOptions kLong{.rateBitsPerSecond = 50_Mbit, .delay = 150ms};
const LinkOptions kLonger{.rateBitsPerSecond = 20_Mbit, .delay = 200ms};

TEST_P(Uplinks, RedundantSendsTheSecondCopyByTheOtherUplink) {
  for (bool dualStack : {true, false}) {
    for (bool down : {true, false}) {
      TwoModems s(GetParam(), "redundant", dualStack, kFast, kLte);
      UdpFlow& call = s.call({.count = 1000}, down);
      s.run(21s);
      EXPECT_EQ(call.received(), 1000u);
      EXPECT_GE(s.sent["slow"], 990u) << down << s.report();
      EXPECT_LE(s.sent["slow"], 1010u) << down << s.report();
    }
  }
}

// 250 ms are less than it takes to notice the silence of a path with a round trip of 300 ms.
TEST_P(Uplinks, RedundantLosesNothingInShortOutagesOfAnUplink) {
  for (bool down : {true, false}) {
    TwoModems s(GetParam(), "redundant", true, kLong, kLonger);
    UdpFlow& call = s.call({.count = 1200}, down);
    for (int i = 0; i < 11; ++i) {
      s.run(1750ms);
      s.fastModemFails(250ms);
    }
    s.run(4s);
    EXPECT_EQ(call.sent(), 1200u);
    EXPECT_GE(call.received(), 1199u) << down << s.report();
  }
}

// The other policies repair as MPTCP does: on the packet's own path while that is alive.
TEST_P(Uplinks, WhatASilentPathHeldIsSentByTheOtherUplink) {
  TwoModems s(GetParam(), "adaptive", true, kFast, kLte);
  TcpFlow& file = s.download(4_MB, {.window = 64 << 10});
  s.run(700ms + GetParam() * 7ms);
  file.restartStall();
  uint64_t before = s.repairsOf(s.hub, "slow");
  s.cut("fast").cut("fast2");
  ASSERT_TRUE(s.finish(file, 20s));
  EXPECT_EQ(s.repairsOf(s.hub, "fast") + s.repairsOf(s.hub, "fast2"), 0u) << s.report();
  EXPECT_GT(s.repairsOf(s.hub, "slow"), before) << s.report();
  EXPECT_LE(file.longestStall(), 280ms) << file.describe() << s.report();
}

// Most new data goes by the first path, which is the fastest, and is lossy. The modem's second path
// would be the best one for protection, and the other uplink is almost as good. What the other
// uplink sent is protected by the modem.
TEST_P(Uplinks, CopiesAndParitiesPreferTheOtherUplink) {
  const LinkOptions near{.rateBitsPerSecond = 50_Mbit, .delay = 20ms};
  for (const char* policy : {"fuso", "cofuso"}) {
    TwoModems s(GetParam(), policy, true, near, near);
    s.change("fast", [](LinkOptions& o) { o.loss = 0.02; });
    s.change("fast2", [](LinkOptions& o) { o.delay = 21ms; });
    s.change("slow", [](LinkOptions& o) { o.delay = 22ms; });
    s.run(12s);
    s.call({.payload = 1000, .interval = 100ms, .count = 200, .together = 5});
    s.run(25s);
    EXPECT_GE(s.protection(2), 100u) << policy << s.report();
    EXPECT_LE(s.protection(1) * 5, s.protection(2)) << policy << s.report();
  }
}

// Without another uplink the second path of the same one is better than nothing.
TEST_P(Uplinks, ASingleUplinkUsesItsOtherPath) {
  Scenario s(GetParam(), with("redundant"));
  s.path("fast", kFast).path("fast2", kFast, true);
  s.edge.uplinks[0].sockets.push_back(s.edge.uplinks[1].sockets[0]);
  s.edge.uplinks.pop_back();
  s.start().run(2s);
  UdpFlow& call = s.call({.count = 500});
  s.run(2s).cut("fast").run(9s);
  EXPECT_EQ(call.received(), 500u) << s.report();
}

}  // namespace
}  // namespace braid::sim::uplinks_test
