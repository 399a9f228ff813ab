// The names of an edge's uplinks at its hub.

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "tests/sim/scenario.h"

namespace braid::sim::names_test {
namespace {

/// The paths of a gateway in that state, by their names.
std::multiset<std::string> paths(const Node& node, const std::string& state = "active") {
  std::multiset<std::string> out;
  for (const PeerStatus& peer : node.status().peers)
    for (const SubflowStatus& s : peer.subflows)
      if (s.state == state) out.insert(s.path);
  return out;
}
using Names = std::multiset<std::string>;

/// Checks that each path of the hub had its name when it came into use.
void expectNamedEvents(const Scenario& s, const std::set<std::string>& names) {
  size_t seen = 0;
  for (const auto& [at, event] : s.hub.events) {
    if (event.kind != Event::Kind::kSubflowUp) continue;
    ++seen;
    EXPECT_TRUE(names.contains(event.path)) << event.path << ", seed " << s.world.seed();
  }
  EXPECT_GT(seen, 0u);
}

TEST(Names, BothSidesShowTheSame) {
  Scenario s(1);
  s.path("wifi", kDsl).path("lte", kLte).path("lte6", kLte, true).start().run(2s);
  EXPECT_EQ(paths(s.edge), (Names{"wifi", "lte", "lte6"}));
  EXPECT_EQ(paths(s.hub), (Names{"wifi", "lte", "lte6"}));
  expectNamedEvents(s, {"wifi", "lte", "lte6"});
}

TEST(Names, ArriveThoughDatagramsAreLost) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Scenario s(seed);
    LinkOptions bad = kLte;
    bad.loss = 0.5;
    s.path("wifi", kDsl).path("lte", bad).start().run(20s);
    s.mend("lte").run(15s);
    EXPECT_EQ(paths(s.hub), (Names{"wifi", "lte"})) << s.report();
    expectNamedEvents(s, {"wifi", "lte"});
  }
}

TEST(Names, ARenamedUplinkIsToldAgain) {
  Scenario s(2);
  s.path("wifi", kDsl).path("lte", kLte).start().run(2s);
  s.edge.uplinks[1].name = "mobile";
  s.edge.setUplink("mobile", true);
  s.run(2s);
  EXPECT_EQ(paths(s.hub), (Names{"wifi", "mobile"})) << s.report();
  EXPECT_FALSE(paths(s.hub).contains("lte"));
}

TEST(Names, AreKnownAfterARestartOfEitherSide) {
  Scenario s(3);
  s.path("wifi", kDsl).path("lte", kLte).start().run(2s);
  for (Node* node : {&s.hub, &s.edge}) {
    ASSERT_TRUE(node->stop());
    node->start();
    s.run(15s);
    EXPECT_EQ(paths(s.hub), (Names{"wifi", "lte"})) << node->name() << s.report();
  }
}

TEST(Names, StayWhenAPathComesBackFromElsewhere) {
  Scenario s(4);
  s.path("wifi", kDsl).path("lte", kLte);
  s.world.path("lte").enableNat(0s, s.world.now());
  s.start().run(2s);
  s.world.path("lte").rebind(true);
  s.run(15s);
  EXPECT_EQ(paths(s.hub), (Names{"wifi", "lte"})) << s.report();
  s.unplug("wifi").run(5s).plug("wifi").run(5s);
  EXPECT_EQ(paths(s.hub), (Names{"wifi", "lte"})) << s.report();
}

std::string observed(const Scenario& s, std::string_view path) {
  const SubflowStatus* at = s.subflow(s.edge, path);
  return at ? at->observed : "";
}

TEST(Names, AnEdgeIsToldItsAddressBehindNat) {
  Scenario s(6);
  s.path("wifi", kDsl).path("lte6", kLte, true);
  Path& wifi = s.world.path("wifi");
  wifi.enableNat(0s, s.world.now());
  s.start().run(2s);
  ASSERT_NE(wifi.outside(), wifi.near().endpoint);
  EXPECT_EQ(observed(s, "wifi"), wifi.outside().toString());
  EXPECT_EQ(observed(s, "lte6"), s.world.path("lte6").outside().toString());
  EXPECT_EQ(s.subflow(s.hub, "wifi")->observed, wifi.far().endpoint.toString());
  wifi.rebind(true);
  UdpFlow& call = s.call({.count = 100});
  s.run(10s);
  EXPECT_GE(call.received(), 90u);
  EXPECT_EQ(observed(s, "wifi"), wifi.outside().toString()) << "told anew when it has moved";
}

TEST(Names, WithTheSettingOffTheHubKnowsAddressesOnly) {
  TunnelOptions silent;
  silent.tellNames = false;
  Scenario s(5, silent);
  s.path("wifi", kDsl).path("lte", kLte).start().run(2s);
  EXPECT_EQ(paths(s.edge), (Names{"wifi", "lte"}));
  EXPECT_EQ(paths(s.hub), (Names{s.world.path("wifi").outside().toString(),
                                 s.world.path("lte").outside().toString()}));
}

}  // namespace
}  // namespace braid::sim::names_test
