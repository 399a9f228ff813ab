// What braidctl finds out about a host, with a fake of the host's network.

#include "ctl/join/site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/if_arp.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "host/fake/fake_network.h"
#include "host/system.h"

namespace braid::site_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct SiteTest : testing::Test {
  void add(const char* name, std::vector<std::string> addresses, bool up = true,
           uint8_t scope = 0) {
    Link link;
    link.index = ++last;
    link.name = name;
    link.hardware = link.name == "lo" ? ARPHRD_LOOPBACK : ARPHRD_ETHER;
    if (link.name.starts_with("braid")) link.kind = "tun";
    link.up = up;
    for (const std::string& text : addresses) {
      size_t slash = text.find('/');
      link.addresses.insert({*Address::parse(text.substr(0, slash)),
                             static_cast<uint8_t>(std::stoi(text.substr(slash + 1))), scope, true,
                             false, false});
    }
    host.edit().setLink(link);
  }
  void route(uint32_t metric, Address::Family family = Address::Family::kV4) {
    host.edit().addDefaultRoute({family, last, {}, metric});
  }
  const NetworkTable& table() {
    host.changed();
    host.process(Time{});
    return host.table();
  }
  FakeHostNetwork host;
  int last = 0;
};

TEST(Ipv6, IsThereWhereItCanBeSwitchedOffAndIsNot) {
  std::string name = (std::filesystem::temp_directory_path() / "braid-site-XXXXXX").string();
  UniqueFd file(mkstemp(name.data()));
  ASSERT_TRUE(file);
  for (auto [text, on] : {std::pair{"0\n", true}, {"1\n", false}, {"", false}}) {
    std::ofstream(name) << text;
    EXPECT_EQ(hasIpv6(name), on) << text;
  }
  std::filesystem::remove(name);
  EXPECT_FALSE(hasIpv6(name)) << "a kernel without it";
}

TEST(Ipv6, IsLeftOutOfAnAnswerForAMachineWithoutIt) {
  JoinAnswer answer;
  answer.concentrator = {*Address::parse("10.99.0.1"), *Address::parse("fd00::1")};
  answer.edge = {{*Address::parse("10.99.0.2"), 24}, {*Address::parse("fd00::2"), 64}};
  answer.networks = {*Prefix::parse("::/0"), *Prefix::parse("0.0.0.0/0")};
  JoinAnswer left = withoutIpv6(answer);
  EXPECT_THAT(left.concentrator, ElementsAre(answer.concentrator[0]));
  EXPECT_THAT(left.edge, ElementsAre(answer.edge[0]));
  EXPECT_THAT(left.networks, ElementsAre(answer.networks[1]));
}

TEST_F(SiteTest, ALanWithoutACarrierIsKnownAsSuch) {
  add("eth0", {"192.0.2.5/24"});
  route(100);
  add("lan0", {"192.168.10.1/24"}, false);
  add("lan1", {}, false);
  Link switchedOn = host.edit().links().at(last);
  switchedOn.on = true;
  host.edit().setLink(switchedOn);
  add("spare", {}, false);
  EXPECT_THAT(findLans(table(), {"eth0"}, "braid0"), IsEmpty());
  EXPECT_THAT(
      findDarkLans(table(), {"eth0"}, "braid0"),
      ElementsAre(DarkLan{"lan0", {*Prefix::parse("192.168.10.0/24")}}, DarkLan{"lan1", {}}));
}

TEST_F(SiteTest, UplinksAreTheInterfacesWithADefaultRouteBestFirst) {
  add("lo", {"127.0.0.1/8"});
  add("wwan0", {"100.70.1.2/30"});
  route(700);
  add("wlan0", {"192.168.43.7/24"});
  route(600);
  route(10, Address::Family::kV6);
  add("eth0", {"192.168.7.1/24"});
  add("eth9", {"192.0.2.7/24"}, false);
  route(1);
  add("braid0", {"10.99.0.2/24"});
  route(0);
  EXPECT_THAT(findUplinks(table(), "braid0"), ElementsAre("wlan0", "wwan0"))
      << "not what is down, nor the tunnel";
}

TEST_F(SiteTest, TheConcentratorsNetworksMustNotBeThoseOfThisHost) {
  add("lo", {"127.0.0.1/8"});
  add("wlan0", {"192.168.1.7/24"});
  route(600);
  add("braid0", {"10.99.0.2/24"});
  JoinAnswer answer;
  answer.edge = {{*Address::parse("10.99.0.2"), 24}};
  auto clash = [&](const char* network) {
    answer.networks = {*Prefix::parse("0.0.0.0/0"), *Prefix::parse(network)};
    return clashText(answer, table(), "braid0");
  };
  EXPECT_THAT(clash("192.168.1.0/24"),
              HasSubstr("network 192.168.1.0/24 is in 192.168.1.0/24 of wlan0 here, too"));
  EXPECT_THAT(clash("192.168.1.128/25"), HasSubstr("network 192.168.1.128/25 is in"));
  EXPECT_EQ(clash("192.168.0.0/16"), "") << "of the wider one, the rest goes through the tunnel";
  EXPECT_EQ(clash("192.168.2.0/24"), "");
  answer.edge = {{*Address::parse("192.168.1.9"), 24}};
  EXPECT_THAT(clash("10.1.0.0/16"), HasSubstr("network 192.168.1.0/24 is in"))
      << "the tunnel's own";
}

TEST_F(SiteTest, LansAreThePrivateNetworksOfTheOthers) {
  add("lo", {"127.0.0.1/8"});
  add("wlan0", {"192.168.43.7/24"});
  route(600);
  add("eth0", {"192.168.7.1/24", "fd00:7::1/64", "2001:db8:7::1/64"});
  add("eth1", {"192.168.7.2/24", "10.0.0.1/32"});
  add("braid0", {"10.99.0.2/24"});
  add("braid1", {"10.98.0.2/24"});
  add("eth2", {"10.9.0.1/24"}, false);
  add("eth3", {"10.8.0.1/24"}, true, 253);
  EXPECT_THAT(findLans(table(), {"wlan0"}, "braid0"),
              ElementsAre(*Prefix::parse("192.168.7.0/24"), *Prefix::parse("fd00:7::/64")))
      << "what is behind another gateway of this host is not behind this one";
}

TEST_F(SiteTest, AHostWithoutARouteHasNoUplinkAndOneWithoutALanNone) {
  add("eth0", {"192.0.2.7/24"});
  EXPECT_THAT(findUplinks(table(), "braid0"), IsEmpty());
  EXPECT_THAT(findLans(table(), {"eth0"}, "braid0"), IsEmpty());
}

}  // namespace
}  // namespace braid::site_test
