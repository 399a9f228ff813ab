#include "gateway/network/route_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/gateway/network/test_link.h"

namespace braid::route_plan_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;
using testing::UnorderedElementsAre;
using Indices = std::vector<uint32_t>;
using WhenDown = DeviceConfig::WhenDown;

class RoutePlanTest : public testing::Test {
 protected:
  RoutePlanTest() {
    config_.uplinks.emplace_back().interface = "wwan0";
    config_.peers.emplace_back();
    link(2, "lan0", {"192.168.1.1/24", "fd00:1::1/64"});
    link(3, "wwan0", {"100.70.0.2/16", "2001:db8:9::2/64"});
    link(4, "braid0", {"10.99.0.2/24"});
  }

  void link(int index, const char* name, const std::vector<std::string>& addresses) {
    host_.setLink(test::linkOf(index, name, addresses));
  }
  void routes(const std::vector<std::string>& networks) {
    config_.device.routes.clear();
    for (const std::string& text : networks) config_.device.routes.push_back(*Prefix::parse(text));
  }
  RoutePlan plan() { return planRoutes(config_, host_, situation_); }
  /// The guard's packet filter.
  FilterRules filter() { return planGuard(config_, host_, situation_).filter; }
  template <typename T>
  static std::vector<std::string> texts(const std::vector<T>& items) {
    std::vector<std::string> out;
    for (const T& item : items) out.push_back(item.toString());
    return out;
  }
  static bool holds(const std::vector<AddressRange>& ranges, const char* text) {
    Address address = *Address::parse(text);
    return std::ranges::any_of(
        ranges, [&](const AddressRange& r) { return r.first <= address && address <= r.last; });
  }

  Config config_;
  NetworkTable host_;
  RouteSituation situation_{"braid0", {}, true, {}, false};
};

TEST_F(RoutePlanTest, NoRoutesNeedNothing) {
  EXPECT_EQ(plan(), RoutePlan{});
  config_.device.whenDown = WhenDown::kBlock;
  EXPECT_EQ(plan(), RoutePlan{});
}

TEST_F(RoutePlanTest, LansAsLongOrLongerStayOnTheirSide) {
  routes({"0.0.0.0/0", "192.168.1.0/24", "192.168.1.128/25", "10.0.0.0/8"});
  config_.device.networks = {*Prefix::parse("192.168.50.0/24"), *Prefix::parse("fd00:2::/64")};
  EXPECT_THAT(texts(plan().routes),
              UnorderedElementsAre("route default dev braid0 table 6599",
                                   "route 192.168.1.128/25 dev braid0 table 6599",
                                   "route 10.0.0.0/8 dev braid0 table 6599",
                                   "throw route 192.168.1.0/24 table 6599",
                                   "throw route 192.168.50.0/24 table 6599"));
}

TEST_F(RoutePlanTest, OnlyFamiliesWithRoutesHaveRules) {
  routes({"0.0.0.0/0"});
  EXPECT_THAT(texts(plan().rules),
              UnorderedElementsAre("IPv4 rule 6150: iif lo ipproto 17 sport 68 dport 67 lookup 254",
                                   "IPv4 rule 6200: not fwmark 0x40/0xe0 lookup 6599"));
  routes({"fd00:7::/48"});
  EXPECT_THAT(texts(plan().rules), ElementsAre("IPv6 rule 6190: not fwmark 0x40/0xe0 lookup 6599"));
}

// With streams, InterceptPolicy has them.
TEST_F(RoutePlanTest, WhatTransparentProxiesTakeIsDeliveredHereWithoutStreamsToo) {
  routes({"0.0.0.0/0"});
  situation_.replies = {{"wwan0", 0x40}};
  const std::string route = "local route 0.0.0.0/0 dev braid0 table 6500";
  config_.tunnel.streams.on = true;
  EXPECT_EQ(plan().filter.localMark, 0x80u);
  EXPECT_THAT(texts(plan().routes), Not(Contains(route)));
  config_.tunnel.streams.on = false;
  EXPECT_EQ(plan().filter.localMark, 0x80u);
  EXPECT_THAT(texts(plan().routes), Contains(route));
  EXPECT_THAT(texts(plan().rules), Contains("IPv4 rule 6100: fwmark 0x80/0xff lookup 6500"));
  EXPECT_THAT(texts(plan().rules), Not(Contains(HasSubstr("IPv6 rule 6100"))));
  config_.device.whenDown = WhenDown::kBlock;
  EXPECT_EQ(filter().localMark, 0u) << "the guard needs no tunnel";
  situation_.replies.clear();
  EXPECT_EQ(plan().filter.localMark, 0u);
}

TEST_F(RoutePlanTest, RoutesForEverythingComeAfterThoseOfOtherGateways) {
  for (const char* route : {"0.0.0.0/0", "128.0.0.0/1", "::/0", "8000::/1", "2000::/3"}) {
    routes({route, "10.9.0.0/16", "fd00:9::/64"});
    bool isV6 = std::string(route).find(':') != std::string::npos;
    EXPECT_THAT(texts(plan().rules),
                IsSupersetOf({std::string("IPv4 rule ") + (isV6 ? "6190" : "6200") +
                                  ": not fwmark 0x40/0xe0 lookup 6599",
                              std::string("IPv6 rule ") + (isV6 ? "6200" : "6190") +
                                  ": not fwmark 0x40/0xe0 lookup 6599"}))
        << route;
  }
}

TEST_F(RoutePlanTest, NumbersAreAsConfiguredAndApartFromOtherGateways) {
  routes({"10.0.0.0/8"});
  situation_.numbers = {0xff0000, 100, 2};
  EXPECT_THAT(texts(plan().rules),
              Contains("IPv4 rule 290: not fwmark 0x400000/0xe00000 lookup 6597"));
  EXPECT_EQ(situation_.numbers.interceptedMark(), 0x820000u);
  EXPECT_EQ(situation_.numbers.replyMark(1), 0x510000u);
  EXPECT_EQ(situation_.numbers.ownMark(), 0x5f0000u);
}

TEST_F(RoutePlanTest, MarksOfOthersAreNotOutside) {
  HostNumbers numbers;
  auto isOutside = [&](uint32_t mark) {
    return (mark & numbers.outsideMask()) == numbers.outsideMark();
  };
  EXPECT_TRUE(isOutside(numbers.ownMark()));
  for (numbers.slot = 0; numbers.slot < 32; ++numbers.slot) {
    for (unsigned uplink = 0; uplink < 32; ++uplink) {
      EXPECT_TRUE(isOutside(numbers.replyMark(uplink)));
      EXPECT_NE(numbers.replyMark(uplink), numbers.ownMark());
    }
    EXPECT_FALSE(isOutside(numbers.interceptedMark()));
  }
  EXPECT_FALSE(isOutside(0xca6c)) << "WireGuard's, by wg-quick";
  EXPECT_FALSE(isOutside(0));
}

TEST_F(RoutePlanTest, AProgramOfThisHostAsksForNamesPastTheTunnelWhileThatIsDown) {
  routes({"0.0.0.0/0"});
  auto asks = [&] {
    return std::ranges::count_if(plan().rules,
                                 [](const RuleSpec& r) { return r.destinationPort == 53; });
  };
  situation_.peerUp = false;
  situation_.asksHere = true;
  EXPECT_EQ(asks(), 0) << "no endpoint has a name";
  config_.peers[0].hosts.push_back({"hub.example", 4433});
  EXPECT_EQ(asks(), 2);
  situation_.asksHere = false;
  EXPECT_EQ(asks(), 0) << "the gateway's own questions have its mark";
  situation_.asksHere = true;
  situation_.peerUp = true;
  EXPECT_EQ(asks(), 0);
}

TEST_F(RoutePlanTest, OtherTunnelsOfThisHostSendPastIt) {
  routes({"0.0.0.0/0", "fd00:7::/48"});
  config_.device.bypassMarks = {{0xca6c, 0xffffffff}, {0x80000, 0xff0000}};
  for (const char* family : {"IPv4", "IPv6"})
    for (const char* mark : {"0xca6c", "0x80000/0xff0000"})
      EXPECT_THAT(texts(plan().rules), Contains(std::string(family) + " rule 6150: iif lo fwmark " +
                                                mark + " lookup 254"));
  EXPECT_THAT(plan().filter.bypass, IsEmpty()) << "there is no guard";
  config_.device.whenDown = WhenDown::kBlock;
  EXPECT_EQ(plan().filter.bypass, config_.device.bypassMarks);
  config_.uplinks.clear();
  EXPECT_THAT(texts(plan().rules), Contains("IPv4 rule 6150: iif lo fwmark 0xca6c lookup 254"));
}

TEST_F(RoutePlanTest, DirectHasNoRuleWhileNoPeerIsUp) {
  routes({"0.0.0.0/0", "::/0"});
  config_.device.whenDown = WhenDown::kDirect;
  EXPECT_THAT(plan().rules, Not(IsEmpty()));
  situation_.peerUp = false;
  EXPECT_THAT(plan().rules, IsEmpty());
}

TEST_F(RoutePlanTest, TheGuardOutlivesTheGateway) {
  routes({"0.0.0.0/0", "::/0", "10.7.0.0/16"});
  config_.device.whenDown = WhenDown::kBlock;
  RoutePlan guard = planGuard(config_, host_, situation_);
  for (const RouteSpec& route : guard.routes) EXPECT_TRUE(route.stays) << route.toString();
  for (const RuleSpec& rule : guard.rules) EXPECT_TRUE(rule.stays) << rule.toString();
  std::string table = std::to_string(HostNumbers::guardTable("braid0"));
  EXPECT_THAT(
      texts(guard.routes),
      testing::IsSupersetOf(
          {"unreachable route 0.0.0.0/0 table " + table, "unreachable route ::/0 table " + table,
           "unreachable route 10.7.0.0/16 table " + table,
           "throw route 192.168.1.0/24 table " + table, "throw route 10.0.0.0/8 table " + table,
           "throw route fe80::/10 table " + table}));
  EXPECT_THAT(texts(guard.rules), Contains("IPv6 rule 6700: not iif lo lookup " + table));
  EXPECT_EQ(guard.filter.uplinks, std::vector<std::string>{"wwan0"});
  EXPECT_TRUE(holds(guard.filter.guarded, "10.7.0.1"));
  EXPECT_TRUE(holds(guard.filter.guarded, "2001:db8::1"));
  EXPECT_FALSE(holds(guard.filter.here, "10.7.0.1")) << "it is behind the tunnel";
  EXPECT_FALSE(holds(guard.filter.maybeHere, "10.7.0.1"));
  EXPECT_FALSE(holds(guard.filter.here, "10.8.0.1"));
  EXPECT_TRUE(holds(guard.filter.maybeHere, "10.8.0.1")) << "it may be of a LAN";
  EXPECT_TRUE(holds(guard.filter.here, "192.168.1.7"));
  EXPECT_FALSE(holds(guard.filter.here, "198.51.100.1"));
  EXPECT_FALSE(holds(guard.filter.maybeHere, "198.51.100.1"));
  for (const RuleSpec& rule : plan().rules)
    EXPECT_EQ(rule.stays, rule.priority >= 6690) << rule.toString();
}

TEST_F(RoutePlanTest, AnUplinkIsFoundByWhateverNamesIt) {
  using Known = std::vector<FilterRules::Known>;
  const Known kEarly{{2}, {3}, {4}};
  const Known kNamed{{2, "lan0"}, {3, "wwan0"}, {4, "braid0"}};
  routes({"0.0.0.0/0"});
  config_.device.whenDown = WhenDown::kBlock;
  EXPECT_EQ(filter().uplinks, std::vector<std::string>{"wwan0"});
  EXPECT_EQ(filter().uplinkIndices, Indices{3}) << "it may be renamed";
  EXPECT_EQ(filter().known, std::nullopt);
  config_.uplinks[0].interface.clear();
  config_.uplinks[0].mac = "02:00:5e:00:53:01";
  EXPECT_THAT(filter().uplinks, IsEmpty());
  EXPECT_EQ(filter().known, kEarly) << "any interface that comes may be the uplink";
  host_.link(3).ownMac = "02:00:5e:00:53:01";
  EXPECT_EQ(filter().uplinks, std::vector<std::string>{"wwan0"});
  EXPECT_EQ(filter().uplinkIndices, Indices{3});
  EXPECT_EQ(filter().known, kEarly) << "it may be plugged in again";
  config_.uplinks[0].mac.clear();
  config_.uplinks[0].interface = "the-modem-of-the-attic";
  EXPECT_THAT(filter().uplinks, IsEmpty()) << "too long for anything but a further name";
  EXPECT_EQ(filter().known, Known{});
  host_.link(3).altnames.insert("the-modem-of-the-attic");
  EXPECT_EQ(filter().uplinks, std::vector<std::string>{"wwan0"});
  EXPECT_EQ(filter().uplinkIndices, Indices{3});
  EXPECT_EQ(filter().known, kEarly);
  config_.uplinks[0].interface = "wwan7";
  EXPECT_EQ(filter().uplinks, std::vector<std::string>{"wwan7"}) << "it may come";
  EXPECT_EQ(plan().filter.known, kNamed) << "or be a further name of one that comes";
  EXPECT_EQ(filter().known, Known{}) << "or, before there was a daemon, of any";
  link(9, "veth1", {});
  host_.link(9).master = 2;
  EXPECT_EQ(plan().filter.known, kNamed) << "nothing leaves by a port of a bridge itself";
}

// Such as one that was an uplink before a reload.
TEST_F(RoutePlanTest, AnInterfaceWithADefaultRouteLeadsPastTheTunnel) {
  routes({"0.0.0.0/0"});
  config_.device.whenDown = WhenDown::kBlock;
  link(5, "wifi0", {"10.70.0.2/24"});
  std::string thrown =
      "throw route 10.0.0.0/8 table " + std::to_string(HostNumbers::guardTable("braid0"));
  EXPECT_THAT(filter().outward, IsEmpty());
  EXPECT_THAT(texts(plan().routes), Contains(thrown));
  for (int index : {3, 4, 5})
    host_.addDefaultRoute({Address::Family::kV4, index, *Address::parse("10.70.0.1"), 100});
  host_.addDefaultRoute({Address::Family::kV6, 5, {}, 7});
  for (const FilterRules& rules : {filter(), plan().filter}) {
    ASSERT_EQ(rules.outward.size(), 1u);
    const FilterRules::Outward& way = rules.outward[0];
    EXPECT_EQ(way.interface, "wifi0");
    EXPECT_EQ(way.index, 5u) << "it may be renamed";
    EXPECT_TRUE(holds(way.here, "10.70.0.7")) << "its own network";
    EXPECT_TRUE(holds(way.here, "239.255.255.250")) << "a LAN, after all";
    EXPECT_FALSE(holds(way.here, "192.168.1.7")) << "that of lan0, whose interface may be down";
    EXPECT_TRUE(holds(rules.here, "192.168.1.7")) << "by others";
  }
  EXPECT_THAT(texts(plan().routes), Not(Contains(thrown)));
  routes({"0.0.0.0/0", "10.70.0.128/25"});
  EXPECT_FALSE(holds(filter().outward[0].here, "10.70.0.129")) << "that is routed";
  host_.removeDefaultRoutes(Address::Family::kV4, 100);
  EXPECT_TRUE(holds(filter().outward[0].here, "192.168.1.7")) << "its default route is of IPv6";
  EXPECT_FALSE(holds(filter().outward[0].here, "fd00:1::7"));
}

TEST_F(RoutePlanTest, AGuardBeforeTheNetworkKnowsTheLansThatWereThere) {
  routes({"0.0.0.0/0", "::/0"});
  config_.device.whenDown = WhenDown::kBlock;
  config_.device.networks = {*Prefix::parse("192.168.50.0/24")};
  link(5, "wifi0", {"10.70.0.2/24"});
  host_.addDefaultRoute({Address::Family::kV4, 5, *Address::parse("10.70.0.1"), 100});
  link(6, "lan1", {"198.51.100.1/26", "2001:db8:31::1/64"});
  situation_.formerLans = lansForGuard(config_, host_, "braid0");
  EXPECT_THAT(
      texts(situation_.formerLans),
      UnorderedElementsAre("192.168.1.0/24", "fd00:1::/64", "198.51.100.0/26", "2001:db8:31::/64"))
      << "not those at uplinks, at the tunnel, or at what leads elsewhere";
  host_.removeLink(6);
  host_.removeLink(3);
  EXPECT_THAT(lansForGuard(config_, host_, "braid0"), IsEmpty()) << "any may be the uplink";
  EXPECT_TRUE(holds(filter().here, "198.51.100.7"));
  EXPECT_TRUE(holds(filter().here, "2001:db8:31::7"));
  EXPECT_FALSE(holds(filter().here, "198.51.100.77"));
  EXPECT_FALSE(holds(filter().outward[0].here, "198.51.100.7"));
  situation_.formerLans.clear();
  EXPECT_FALSE(holds(filter().here, "198.51.100.7"));
}

// The routes of a second gateway lead into its own device.
TEST_F(RoutePlanTest, OnlyRoutesForEverythingMayGoByOtherGateways) {
  routes({"0.0.0.0/0", "::/1", "8000::/1", "10.7.0.0/16", "2001:db8:7::/48"});
  config_.device.whenDown = WhenDown::kBlock;
  EXPECT_TRUE(holds(filter().ownOnly, "10.7.0.1"));
  EXPECT_TRUE(holds(filter().ownOnly, "2001:db8:7::1"));
  EXPECT_FALSE(holds(filter().ownOnly, "10.8.0.1"));
  EXPECT_FALSE(holds(filter().ownOnly, "2001:db8:8::1"));
  routes({"0.0.0.0/0", "2000::/3", "2001:db8:7::/48"});
  EXPECT_TRUE(holds(filter().ownOnly, "2001:db8:7::1"));
  EXPECT_FALSE(holds(filter().ownOnly, "2001:db8:8::1")) << "global unicast is everything";
}

// A LAN gets its leases by broadcast, and its names by multicast.
TEST_F(RoutePlanTest, WhatHostsOfALanNeedOfEachOtherIsSparedWhateverTheUplink) {
  routes({"0.0.0.0/0", "::/0"});
  config_.device.whenDown = WhenDown::kBlock;
  config_.uplinks[0].interface.clear();
  config_.uplinks[0].mac = "02:00:5e:00:53:01";
  for (const char* needed :
       {"255.255.255.255", "224.0.0.251", "169.254.1.1", "fe80::1", "ff02::fb"})
    EXPECT_TRUE(holds(plan().filter.here, needed)) << needed;
}

TEST_F(RoutePlanTest, TheGuardTakesTheOtherFamilyAlong) {
  config_.device.whenDown = WhenDown::kBlock;
  routes({"0.0.0.0/1", "128.0.0.0/1"});
  EXPECT_TRUE(holds(plan().filter.guarded, "2001:db8::1"));
  routes({"10.0.0.0/8"});
  EXPECT_FALSE(holds(plan().filter.guarded, "2001:db8::1"));
  EXPECT_FALSE(holds(plan().filter.here, "10.0.0.1")) << "just what is guarded";
  EXPECT_FALSE(holds(plan().filter.maybeHere, "10.0.0.1"));
}

TEST_F(RoutePlanTest, RepliesAreEndangeredByWhatTheirAddressesMayBe) {
  routes({"10.1.0.0/16", "fd00:7::/48"});
  EXPECT_FALSE(endangersReplies(config_, host_));
  routes({"10.1.0.0/16", "8.0.0.0/8"});
  EXPECT_TRUE(endangersReplies(config_, host_));
  routes({"100.64.0.0/10"});
  EXPECT_TRUE(endangersReplies(config_, host_)) << "hosts on the uplink's link";
  config_.uplinks.clear();
  EXPECT_FALSE(endangersReplies(config_, host_));
}

TEST_F(RoutePlanTest, WhatIsAtInterfacesOtherThanTheUplinksIsOfThisSide) {
  link(6, "docker0", {"172.17.0.1/16"});
  link(7, "auto0", {"169.254.3.3/16"});
  config_.device.networks = {*Prefix::parse("192.168.50.0/24")};
  config_.device.addresses = {{*Address::parse("10.99.0.2"), 24}};
  auto own = [&] { return texts(ownNetworks(config_, host_, "braid0")); };
  EXPECT_THAT(own(), UnorderedElementsAre("192.168.50.0/24", "10.99.0.2/32", "192.168.1.0/24",
                                          "fd00:1::/64", "172.17.0.0/16"))
      << "not what is of a link only";
  config_.peers[0].options.prefixes = {*Prefix::parse("172.17.0.0/16"),
                                       *Prefix::parse("192.168.0.0/16")};
  EXPECT_THAT(own(), UnorderedElementsAre("192.168.50.0/24", "10.99.0.2/32", "192.168.1.0/24",
                                          "fd00:1::/64"))
      << "a peer has it by name";
  config_.tunnel.mode = TunnelOptions::Mode::kTap;
  EXPECT_THAT(own(), UnorderedElementsAre("192.168.50.0/24", "10.99.0.2/32"));
}

}  // namespace
}  // namespace braid::route_plan_test
