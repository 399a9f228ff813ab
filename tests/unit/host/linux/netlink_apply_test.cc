#include "host/linux/netlink_monitor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/fib_rules.h>
#include <linux/if.h>
#include <linux/if_addr.h>
#include <linux/netconf.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <algorithm>

#include "host/linux/netlink.h"

namespace braid::netlink_table_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Kind = NetworkChange::Kind;

Address ip(const char* text) {
  return *Address::parse(text);
}

constexpr unsigned kOn = IFF_UP | IFF_LOWER_UP | IFF_RUNNING;

class NetlinkApplyTest : public testing::Test {
 protected:
  void link(uint16_t type, int index, const std::string& name, unsigned flags = kOn,
            uint8_t operational = IF_OPER_UP, uint8_t family = AF_UNSPEC) {
    NetlinkRequest m(type, 0);
    auto& body = m.body<ifinfomsg>();
    body.ifi_family = family;
    body.ifi_index = index;
    body.ifi_flags = flags;
    m.put(IFLA_IFNAME, name);
    m.put(IFLA_MTU, uint32_t{1500});
    m.put(IFLA_OPERSTATE, operational);
    applyNetlink(m.header(), table_);
  }
  /// `lifetime`: seconds left; UINT32_MAX: forever.
  void addressThatLives(uint16_t type, int index, const char* local, uint32_t lifetime) {
    NetlinkRequest m(type, 0);
    auto& body = m.body<ifaddrmsg>();
    body.ifa_family = socketFamily(ip(local).family);
    body.ifa_prefixlen = 24;
    body.ifa_index = static_cast<uint32_t>(index);
    m.put(IFA_LOCAL, ip(local));
    ifa_cacheinfo info{lifetime, lifetime, 0, 0};
    mnl_attr_put(&m.header(), IFA_CACHEINFO, sizeof info, &info);
    applyNetlink(m.header(), table_);
  }
  void address(uint16_t type, int index, const char* local, uint32_t flags = 0,
               const char* peer = nullptr) {
    NetlinkRequest m(type, 0);
    auto& body = m.body<ifaddrmsg>();
    body.ifa_family = socketFamily(ip(local).family);
    body.ifa_prefixlen = 24;
    body.ifa_index = static_cast<uint32_t>(index);
    if (ip(local).isV4() || peer) m.put(IFA_LOCAL, ip(local));
    m.put(IFA_ADDRESS, ip(peer ? peer : local));
    m.put(IFA_FLAGS, flags);
    applyNetlink(m.header(), table_);
  }
  void route(uint16_t type, RouteSpec spec, int device, uint16_t flags = 0) {
    NetlinkRequest m = routeRequest(type, spec, device);
    m.header().nlmsg_flags = flags;
    applyNetlink(m.header(), table_);
  }
  RouteSpec defaultVia(const char* gateway, uint32_t metric = 0) {
    RouteSpec r;
    r.destination.address.family = ip(gateway).family;
    r.via = ip(gateway);
    r.metric = metric;
    return r;
  }
  std::vector<std::string> changes() {
    std::vector<std::string> out;
    for (const NetworkChange& c : table_.changesSince(before_)) out.push_back(c.text);
    before_ = table_;
    return out;
  }
  NetworkTable table_, before_;
};

TEST_F(NetlinkApplyTest, LinkComesGoesUpAndDown) {
  link(RTM_NEWLINK, 3, "eth1", IFF_UP, IF_OPER_DOWN);
  EXPECT_THAT(changes(), ElementsAre("eth1 appeared"));
  link(RTM_NEWLINK, 3, "eth1");
  EXPECT_THAT(changes(), ElementsAre("eth1 is up"));
  link(RTM_NEWLINK, 3, "eth1", IFF_UP);
  EXPECT_THAT(changes(), ElementsAre("eth1 is down"));
  link(RTM_NEWLINK, 3, "dsl0", IFF_UP);
  EXPECT_THAT(changes(), ElementsAre("eth1 is now dsl0"));
  EXPECT_EQ(table_.find("eth1"), nullptr);
  ASSERT_NE(table_.find("dsl0"), nullptr);
  link(RTM_DELLINK, 3, "dsl0");
  EXPECT_THAT(changes(), ElementsAre("dsl0 is gone"));
}

TEST_F(NetlinkApplyTest, UpNeedsSwitchCarrierAndOperationalState) {
  struct Case {
    unsigned flags;
    uint8_t state;
    bool up;
  };
  for (Case c : {Case{kOn, IF_OPER_UP, true}, Case{kOn, IF_OPER_UNKNOWN, true},
                 Case{kOn, IF_OPER_DORMANT, false}, Case{kOn, IF_OPER_LOWERLAYERDOWN, false},
                 Case{IFF_LOWER_UP, IF_OPER_UP, false}, Case{IFF_UP, IF_OPER_UP, false}}) {
    link(RTM_NEWLINK, 3, "wlan0", c.flags, c.state);
    EXPECT_EQ(table_.find("wlan0")->up, c.up) << c.flags << " " << unsigned(c.state);
  }
}

TEST_F(NetlinkApplyTest, SwitchingOffIsCountedEvenWhenItIsOnAgain) {
  link(RTM_NEWLINK, 3, "eth1");
  link(RTM_NEWLINK, 3, "eth1", 0);
  link(RTM_NEWLINK, 3, "eth1");
  EXPECT_EQ(table_.find("eth1")->switchedOff, 1u);
}

TEST_F(NetlinkApplyTest, LeavingABridgeIsNotLosingTheLink) {
  link(RTM_NEWLINK, 3, "eth1");
  link(RTM_DELLINK, 3, "eth1", kOn, IF_OPER_UP, AF_BRIDGE);
  EXPECT_NE(table_.find("eth1"), nullptr);
}

TEST_F(NetlinkApplyTest, AddressesWithTheirFlags) {
  link(RTM_NEWLINK, 3, "eth1");
  changes();
  address(RTM_NEWADDR, 3, "192.0.2.5");
  EXPECT_THAT(changes(), ElementsAre("eth1 has 192.0.2.5/24"));
  address(RTM_NEWADDR, 3, "2001:db8::5", IFA_F_TENTATIVE);
  changes();
  address(RTM_NEWADDR, 3, "2001:db8::5", IFA_F_TEMPORARY | IFA_F_DEPRECATED);
  const Link* l = table_.find("eth1");
  ASSERT_EQ(l->addresses.size(), 2u);
  const LinkAddress& v6 = *l->addresses.rbegin();
  EXPECT_TRUE(v6.usable);
  EXPECT_TRUE(v6.temporary);
  EXPECT_TRUE(v6.deprecated);
  address(RTM_NEWADDR, 3, "192.0.2.5", IFA_F_SECONDARY);
  EXPECT_FALSE(l->addresses.begin()->temporary) << "in IPv4 the bit means secondary";
  changes();
  address(RTM_DELADDR, 3, "192.0.2.5");
  EXPECT_THAT(changes(), Contains("eth1 lost 192.0.2.5/24"));
}

TEST_F(NetlinkApplyTest, UnusableWhileTentativeOrDuplicate) {
  link(RTM_NEWLINK, 3, "eth1");
  for (uint32_t flags : {IFA_F_TENTATIVE, IFA_F_DADFAILED, IFA_F_TENTATIVE | IFA_F_DADFAILED}) {
    address(RTM_NEWADDR, 3, "2001:db8::5", flags);
    EXPECT_FALSE(table_.find("eth1")->addresses.begin()->usable) << flags;
  }
  address(RTM_NEWADDR, 3, "2001:db8::5", IFA_F_TENTATIVE | IFA_F_OPTIMISTIC);
  EXPECT_TRUE(table_.find("eth1")->addresses.begin()->usable);
}

TEST_F(NetlinkApplyTest, OnPointToPointLinksTheLocalEndCounts) {
  link(RTM_NEWLINK, 3, "ppp0");
  address(RTM_NEWADDR, 3, "192.0.2.5", 0, "198.51.100.1");
  EXPECT_EQ(table_.find("ppp0")->addresses.begin()->address, ip("192.0.2.5"));
}

TEST_F(NetlinkApplyTest, DefaultRoutesOfTheMainTableOnly) {
  link(RTM_NEWLINK, 3, "eth1");
  changes();
  RouteSpec other = defaultVia("192.0.2.1");
  other.table = 100;
  route(RTM_NEWROUTE, other, 3);
  RouteSpec narrow = defaultVia("192.0.2.1");
  narrow.destination = *Prefix::parse("10.0.0.0/8");
  route(RTM_NEWROUTE, narrow, 3);
  EXPECT_THAT(changes(), IsEmpty());
  route(RTM_NEWROUTE, defaultVia("192.0.2.1"), 3);
  EXPECT_THAT(changes(), ElementsAre("eth1 has an IPv4 default route via 192.0.2.1"));
  EXPECT_TRUE(table_.hasDefaultRoute(3, Address::Family::kV4));
  EXPECT_FALSE(table_.hasDefaultRoute(3, Address::Family::kV6));
  EXPECT_FALSE(table_.hasDefaultRoute(4, Address::Family::kV4));
  route(RTM_DELROUTE, defaultVia("192.0.2.1"), 3);
  EXPECT_FALSE(table_.hasDefaultRoute(3, Address::Family::kV4));
}

TEST_F(NetlinkApplyTest, ReplacedRouteTakesTheOldOnesPlace) {
  route(RTM_NEWROUTE, defaultVia("192.0.2.1", 100), 3);
  route(RTM_NEWROUTE, defaultVia("198.51.100.1", 200), 4);
  route(RTM_NEWROUTE, defaultVia("192.0.2.9", 100), 3, NLM_F_REPLACE);
  EXPECT_THAT(table_.defaultRoutes(), testing::SizeIs(2));
  EXPECT_EQ(table_.defaultRoutes().begin()->via, ip("192.0.2.9"));
}

TEST_F(NetlinkApplyTest, EachHopOfAMultipathRouteCounts) {
  NetlinkRequest m(RTM_NEWROUTE, 0);
  auto& body = m.body<rtmsg>();
  body.rtm_family = AF_INET;
  body.rtm_table = RT_TABLE_MAIN;
  body.rtm_type = RTN_UNICAST;
  rtnexthop hops[2] = {{sizeof(rtnexthop), 0, 0, 3}, {sizeof(rtnexthop), 0, 0, 4}};
  mnl_attr_put(&m.header(), RTA_MULTIPATH, sizeof hops, hops);
  applyNetlink(m.header(), table_);
  EXPECT_TRUE(table_.hasDefaultRoute(3, Address::Family::kV4));
  EXPECT_TRUE(table_.hasDefaultRoute(4, Address::Family::kV4));
}

TEST_F(NetlinkApplyTest, AddressesAndNetworksThatAreTheHostsOwn) {
  link(RTM_NEWLINK, 3, "eth1");
  address(RTM_NEWADDR, 3, "192.0.2.5");
  EXPECT_TRUE(table_.isOwn(ip("192.0.2.5")));
  EXPECT_FALSE(table_.isOwn(ip("192.0.2.6")));
  struct Case {
    const char* network;
    uint32_t table;
    bool counts;
  };
  for (const Case& c : {Case{"198.51.100.0/28", RT_TABLE_LOCAL, true},
                        {"198.51.100.0/28", 77, true},
                        {"198.51.100.3", RT_TABLE_MAIN, true},
                        {"2001:db8:1::/64", RT_TABLE_LOCAL, true},
                        {"0.0.0.0/0", RT_TABLE_MAIN, true},
                        {"0.0.0.0/0", 100, false},
                        {"::/0", 100, false}}) {
    RouteSpec spec;
    spec.destination = *Prefix::parse(c.network);
    spec.table = c.table;
    spec.kind = RouteSpec::Kind::kLocal;
    Address inside = spec.destination.address;
    inside.bytes[inside.isV4() ? 3 : 15] |= 3;
    route(RTM_NEWROUTE, spec, 1);
    EXPECT_EQ(table_.isOwn(inside), c.counts) << c.network << " in table " << c.table;
    route(RTM_DELROUTE, spec, 1);
    EXPECT_FALSE(table_.isOwn(inside)) << c.network;
  }
}

TEST_F(NetlinkApplyTest, ANetworkIsTheHostsOwnWhileARouteSaysSo) {
  RouteSpec spec;
  spec.destination = *Prefix::parse("198.51.100.0/28");
  spec.table = RT_TABLE_LOCAL;
  spec.kind = RouteSpec::Kind::kLocal;
  route(RTM_NEWROUTE, spec, 1);
  spec.table = 77;
  route(RTM_NEWROUTE, spec, 1);
  route(RTM_DELROUTE, spec, 1);
  EXPECT_TRUE(table_.isOwn(ip("198.51.100.3"))) << "by the other table";
  spec.table = RT_TABLE_LOCAL;
  spec.kind = RouteSpec::Kind::kUnicast;
  route(RTM_NEWROUTE, spec, 3);
  EXPECT_TRUE(table_.isOwn(ip("198.51.100.3"))) << "a further route";
  route(RTM_NEWROUTE, spec, 3, NLM_F_REPLACE);
  EXPECT_FALSE(table_.isOwn(ip("198.51.100.3")));
  spec.kind = RouteSpec::Kind::kLocal;
  route(RTM_NEWROUTE, spec, 3);
  table_.forgetRoutes();
  EXPECT_FALSE(table_.isOwn(ip("198.51.100.3")));
  route(RTM_NEWROUTE, spec, 3);
  link(RTM_NEWLINK, 3, "eth1");
  link(RTM_DELLINK, 3, "eth1");
  EXPECT_FALSE(table_.isOwn(ip("198.51.100.3")));
}

TEST_F(NetlinkApplyTest, AGoneLinkTakesItsRoutesAlong) {
  link(RTM_NEWLINK, 3, "eth1");
  route(RTM_NEWROUTE, defaultVia("192.0.2.1"), 3);
  link(RTM_DELLINK, 3, "eth1");
  EXPECT_THAT(table_.defaultRoutes(), IsEmpty());
}

TEST_F(NetlinkApplyTest, ShortMessagesChangeNothing) {
  for (uint16_t type : {RTM_NEWLINK, RTM_DELLINK, RTM_NEWADDR, RTM_DELADDR, RTM_NEWROUTE,
                        RTM_DELROUTE, RTM_NEWRULE}) {
    NetlinkRequest m(type, 0);
    applyNetlink(m.header(), table_);
  }
  EXPECT_THAT(changes(), IsEmpty());
}

TEST(NetlinkMessage, RoutesAndRulesSurviveTheirWireForm) {
  RouteSpec r;
  r.destination = *Prefix::parse("2001:db8:1::/48");
  r.via = ip("2001:db8::1");
  r.table = 6600;
  r.metric = 77;
  r.onLink = true;
  auto route = parseRoute(routeRequest(RTM_NEWROUTE, r, 5).header());
  ASSERT_TRUE(route);
  EXPECT_EQ(route->spec, r);
  EXPECT_EQ(route->device, 5);
  EXPECT_EQ(route->protocol, kBraidProtocol);

  RuleSpec rule;
  rule.priority = 6601;
  rule.outInterface = "wwan0";
  rule.from = *Prefix::parse("192.0.2.5");
  rule.table = 6600;
  rule.suppressPrefixLength = 0;
  rule.mark = 0x40;
  rule.markMask = 0xe0;
  rule.localOnly = rule.inverted = true;
  rule.protocol = 17;
  rule.sourcePort = 68;
  rule.destinationPort = 67;
  auto found = parseRule(ruleRequest(RTM_NEWRULE, rule).header());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->spec, rule);
  EXPECT_EQ(found->protocol, kBraidProtocol);

  for (const char* everything : {"0.0.0.0/0", "::/0"}) {
    RouteSpec here;
    here.destination = *Prefix::parse(everything);
    here.table = 0x42000007;
    here.kind = RouteSpec::Kind::kLocal;
    auto local = parseRoute(routeRequest(RTM_NEWROUTE, here, 5).header());
    ASSERT_TRUE(local);
    EXPECT_EQ(local->spec, here);
    for (RouteSpec::Kind kind : {RouteSpec::Kind::kThrow, RouteSpec::Kind::kUnreachable}) {
      here.kind = kind;
      auto other = parseRoute(routeRequest(RTM_NEWROUTE, here, 0).header());
      ASSERT_TRUE(other);
      EXPECT_EQ(other->spec, here);
      EXPECT_EQ(other->device, 0);
    }
  }

  InterfaceAddress a{ip("10.1.2.3"), 24};
  auto address = parseAddress(addressRequest(RTM_NEWADDR, a, 5).header());
  ASSERT_TRUE(address);
  EXPECT_EQ(address->address, a);
  EXPECT_EQ(address->protocol, kBraidProtocol);
}

TEST(NetlinkMessage, SpecsReadAsTheIpCommandPrintsThem) {
  RouteSpec r;
  r.destination = *Prefix::parse("10.0.0.0/8");
  r.device = "braid0";
  EXPECT_EQ(r.toString(), "route 10.0.0.0/8 dev braid0");
  RuleSpec rule;
  rule.family = Address::Family::kV6;
  rule.priority = 7;
  rule.table = 100;
  EXPECT_EQ(rule.toString(), "IPv6 rule 7: lookup 100");
  rule.mark = 9;
  EXPECT_EQ(rule.toString(), "IPv6 rule 7: fwmark 0x9 lookup 100");
  rule.markMask = 0xf;
  rule.inverted = rule.localOnly = true;
  rule.protocol = 17;
  rule.destinationPort = 53;
  EXPECT_EQ(rule.toString(),
            "IPv6 rule 7: not iif lo fwmark 0x9/0xf ipproto 17 dport 53 lookup 100");
  r.destination = *Prefix::parse("::/0");
  r.kind = RouteSpec::Kind::kLocal;
  EXPECT_EQ(r.toString(), "local route ::/0 dev braid0");
  r.device.clear();
  r.kind = RouteSpec::Kind::kThrow;
  EXPECT_EQ(r.toString(), "throw route ::/0");
}

// ---------------------------------------------------------------- what may be ours

TEST_F(NetlinkApplyTest, ALossIsNotedOfWhatMayBeOurs) {
  const std::string word = "addresses, routes or rules of ours may be gone";
  link(RTM_NEWLINK, 3, "eth1");
  address(RTM_NEWADDR, 3, "192.0.2.5");
  route(RTM_NEWROUTE, defaultVia("192.0.2.1"), 3);
  EXPECT_THAT(changes(), Not(Contains(word)));
  route(RTM_DELROUTE, defaultVia("192.0.2.1"), 3);
  EXPECT_THAT(changes(), Contains(word));
  address(RTM_DELADDR, 3, "192.0.2.5");
  EXPECT_THAT(changes(), Contains(word));
  NetlinkRequest rule(RTM_DELRULE, 0);
  rule.body<fib_rule_hdr>().family = AF_INET;
  applyNetlink(rule.header(), table_);
  EXPECT_THAT(changes(), ElementsAre(word));
  link(RTM_NEWLINK, 3, "eth1", 0, IF_OPER_DOWN);
  link(RTM_NEWLINK, 3, "eth1");
  EXPECT_THAT(changes(), ElementsAre(word)) << "off and on between two looks";
}

TEST_F(NetlinkApplyTest, ForwardingOfTheWholeHostThatEndsIsALoss) {
  auto tell = [&](int index, uint32_t on) {
    NetlinkRequest m(RTM_NEWNETCONF, 0);
    m.body<netconfmsg>().ncm_family = AF_INET;
    m.put(NETCONFA_IFINDEX, static_cast<uint32_t>(index));
    m.put(NETCONFA_FORWARDING, on);
    applyNetlink(m.header(), table_);
    return changes();
  };
  EXPECT_THAT(tell(NETCONFA_IFINDEX_ALL, 1), IsEmpty());
  EXPECT_THAT(tell(3, 0), IsEmpty()) << "one interface";
  EXPECT_THAT(tell(NETCONFA_IFINDEX_ALL, 0),
              ElementsAre("addresses, routes or rules of ours may be gone"));
  NetlinkRequest empty(RTM_NEWNETCONF, 0);
  applyNetlink(empty.header(), table_);
  EXPECT_THAT(changes(), IsEmpty());
}

// A DHCP lease that expired; nobody removed the address.
TEST_F(NetlinkApplyTest, AnAddressWhoseLifetimeRanOutIsNoLossOfOurs) {
  const std::string word = "addresses, routes or rules of ours may be gone";
  link(RTM_NEWLINK, 3, "eth1");
  for (const char* a : {"192.0.2.5", "2001:db8::5"}) {
    for (uint32_t left : {0u, 1u, 2u, 3600u, UINT32_MAX}) {
      addressThatLives(RTM_NEWADDR, 3, a, 3600);
      changes();
      addressThatLives(RTM_DELADDR, 3, a, left);
      std::vector<std::string> told = changes();
      EXPECT_THAT(told, Contains(std::string("eth1 lost ") + a + "/24"));
      EXPECT_EQ(std::count(told.begin(), told.end(), word), left <= 1 ? 0 : 1) << a << " " << left;
    }
  }
}

TEST_F(NetlinkApplyTest, TellsMacAndAltnames) {
  auto told = [&](const std::vector<std::string>& altnames, bool whole) {
    NetlinkRequest m(RTM_NEWLINK, 0);
    auto& body = m.body<ifinfomsg>();
    body.ifi_index = 3;
    body.ifi_flags = kOn;
    m.put(IFLA_IFNAME, std::string("eth1"));
    if (whole) {
      m.put(IFLA_MTU, uint32_t{1500});
      const uint8_t mac[] = {0x02, 0, 0x5e, 0, 0x53, 0xff}, own[] = {0x02, 0, 0x5e, 0, 0x53, 1};
      mnl_attr_put(&m.header(), IFLA_ADDRESS, sizeof mac, mac);
      mnl_attr_put(&m.header(), IFLA_PERM_ADDRESS, sizeof own, own);
    }
    if (!altnames.empty()) {
      nlattr* nest = mnl_attr_nest_start(&m.header(), IFLA_PROP_LIST);
      for (const std::string& name : altnames)
        mnl_attr_put_strz(&m.header(), IFLA_ALT_IFNAME, name.c_str());
      mnl_attr_nest_end(&m.header(), nest);
    }
    applyNetlink(m.header(), table_);
  };
  told({"wan-left", "enx02005e005301"}, true);
  const Link& l = table_.links().at(3);
  EXPECT_EQ(l.mac, "02:00:5e:00:53:ff");
  EXPECT_EQ(l.ownMac, "02:00:5e:00:53:01");
  EXPECT_THAT(l.altnames, ElementsAre("enx02005e005301", "wan-left"));
  EXPECT_EQ(table_.find(LinkSelector{"wan-left", "", ""}), &l);
  EXPECT_EQ(table_.find(LinkSelector{"", "02:00:5e:00:53:01", ""}), &l);
  EXPECT_EQ(table_.find(LinkSelector{"", "02:00:5e:00:53:02", ""}), nullptr);
  told({}, false);
  EXPECT_THAT(l.altnames, testing::SizeIs(2)) << "the message does not tell all";
  told({}, true);
  EXPECT_THAT(l.altnames, IsEmpty());
}

TEST_F(NetlinkApplyTest, WhatIsReadAnewMayHaveHappened) {
  link(RTM_NEWLINK, 3, "eth1");
  changes();
  NetworkTable fresh;
  fresh.link(3) = table_.links().at(3);
  fresh.continueFrom(table_);
  table_ = fresh;
  EXPECT_EQ(table_.links().at(3).switchedOff, 1u) << "its routes may be gone";
  EXPECT_THAT(changes(), ElementsAre("addresses, routes or rules of ours may be gone"));
}

}  // namespace
}  // namespace braid::netlink_table_test
