#include "gateway/join/address_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "host/fake/fake_network.h"

namespace braid::address_plan_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Prefix net(const char* text) {
  return *Prefix::parse(text);
}

struct AddressPlanTest : testing::Test {
  AddressPlanTest() {
    config.device.addresses = {{*Address::parse("10.99.0.1"), 24},
                               {*Address::parse("fd99::1"), 64}};
    config.device.networks = {net("10.1.0.0/16")};
  }
  void addPeer(const char* name, std::vector<Prefix> prefixes) {
    config.peers.emplace_back().options = {
        .name = name, .pin = {}, .endpoints = {}, .prefixes = std::move(prefixes)};
  }
  std::vector<std::string> given(const char* name = "new") const {
    auto found = freeAddresses(config, name);
    std::vector<std::string> out;
    for (const InterfaceAddress& a : std::get<std::vector<InterfaceAddress>>(found))
      out.push_back(a.toString());
    return out;
  }
  std::string refusal(std::vector<Prefix> wanted, std::vector<Prefix> offered = {}) const {
    return refuseNetworks(wanted, offered, connected, config, "new");
  }
  Config config;
  std::vector<Prefix> connected;
};

TEST_F(AddressPlanTest, TheLowestFreeAddressOfEachFamilyIsGiven) {
  EXPECT_THAT(given(), ElementsAre("10.99.0.2/24", "fd99::2/64"));
  addPeer("a", {net("10.99.0.2/32"), net("fd99::2/128")});
  addPeer("b", {net("10.99.0.4/32"), net("0.0.0.0/0")});
  EXPECT_THAT(given(), ElementsAre("10.99.0.3/24", "fd99::3/64"));
  EXPECT_THAT(given("a"), ElementsAre("10.99.0.2/24", "fd99::2/64"))
      << "who is replaced keeps its addresses";
}

TEST_F(AddressPlanTest, AFullNetworkSaysWhatToDo) {
  config.device.addresses = {{*Address::parse("10.99.0.1"), 30}};
  EXPECT_THAT(given(), ElementsAre("10.99.0.2/30"));
  addPeer("a", {net("10.99.0.2/32")});
  EXPECT_THAT(std::get<std::string>(freeAddresses(config, "new")),
              HasSubstr("give it a wider one"));
  config.device.addresses.clear();
  EXPECT_THAT(std::get<std::string>(freeAddresses(config, "new")), HasSubstr("device.addresses"));
}

TEST_F(AddressPlanTest, ThePlaceOfTheBroadcastIsNotGiven) {
  config.device.addresses = {{*Address::parse("10.99.0.1"), 29}};
  addPeer("a", {net("10.99.0.2/31"), net("10.99.0.4/31"), net("10.99.0.6/32")});
  EXPECT_TRUE(std::holds_alternative<std::string>(freeAddresses(config, "new")));
}

TEST_F(AddressPlanTest, WhoIsTheWayToHalfOfEverythingHasNotAllAddresses) {
  addPeer("exit", {net("0.0.0.0/1"), net("128.0.0.0/1")});
  EXPECT_FALSE(std::holds_alternative<std::string>(freeAddresses(config, "new")));
}

TEST_F(AddressPlanTest, NetworksThatOthersHaveAreRefusedByName) {
  addPeer("shop", {net("192.168.5.0/24")});
  EXPECT_EQ(refusal({net("192.168.7.0/24"), net("fd00:7::/64")}), "");
  EXPECT_THAT(refusal({net("192.168.0.0/16")}),
              HasSubstr("overlaps 192.168.5.0/24 of the gateway shop"));
  EXPECT_THAT(refusal({net("192.168.5.128/25")}), HasSubstr("of the gateway shop"));
  EXPECT_THAT(refusal({net("10.1.2.0/24")}),
              HasSubstr("overlaps 10.1.0.0/16 behind the concentrator"));
  EXPECT_THAT(refusal({net("10.99.0.0/25")}), HasSubstr("the tunnel's own 10.99.0.0/24"));
  EXPECT_THAT(refusal({net("172.16.3.0/24")}, {net("172.16.0.0/12")}),
              HasSubstr("behind the concentrator"));
  EXPECT_EQ(refusal({net("172.16.3.0/24")}, {net("0.0.0.0/0")}), "")
      << "everything is reached there but what is closer";
  EXPECT_EQ(refusal({net("172.16.3.0/24"), net("192.168.7.0/24")},
                    {net("0.0.0.0/1"), net("128.0.0.0/1")}),
            "")
      << "the same in halves";
  EXPECT_EQ(refuseNetworks({net("192.168.5.0/24")}, {}, {}, config, "shop"), "") << "its own";
}

TEST_F(AddressPlanTest, WhatNoHostHasIsRefused) {
  for (const char* text :
       {"0.0.0.0/0", "::/0", "127.0.0.0/8", "224.0.0.0/4", "fe80::/64", "ff00::/8",
        "169.254.1.0/24", "100.100.100.200/32", "100.64.0.0/10", "fd00:ec2::/48"})
    EXPECT_NE(refusal({net(text)}), "") << text;
  EXPECT_THAT(refusal({net("192.168.7.0/24"), net("192.168.7.128/25")}),
              HasSubstr("another of this gateway"));
}

TEST_F(AddressPlanTest, OnlyPrivateNetworksAreHadByAnInvitation) {
  for (const char* text :
       {"32.0.0.0/3", "128.0.0.0/3", "2000::/3", "8.8.8.8/32", "8.0.0.0/6", "f800::/6"})
    EXPECT_THAT(refusal({net(text)}), HasSubstr("is not private")) << text;
}

TEST_F(AddressPlanTest, NetworksInWhichTheConcentratorItselfIsAreRefused) {
  NetworkTable table;
  Link link;
  link.index = 2;
  link.name = "eth0";
  link.addresses.insert({*Address::parse("192.168.1.20"), 24, 0, true, false, false});
  table.setLink(link);
  connected = connectedNetworks(table, "braid0");
  EXPECT_THAT(refusal({net("192.168.1.0/24")}),
              HasSubstr("overlaps 192.168.1.0/24, which the concentrator itself is in"));
  EXPECT_THAT(refusal({net("192.168.1.128/25")}), HasSubstr("overlaps 192.168.1.0/24"));
  EXPECT_EQ(refusal({net("192.168.2.0/24")}), "");
  EXPECT_TRUE(connectedNetworks(table, "eth0").empty()) << "its own device";
}

TEST_F(AddressPlanTest, NetworksThatTheConcentratorHasARouteToAreRefused) {
  FakeHostNetwork host;
  host.setElsewhere({net("10.20.0.0/16")});
  connected = networksOfHost(host.table(), host, "braid0");
  EXPECT_THAT(refusal({net("10.20.5.0/24")}),
              HasSubstr("overlaps 10.20.0.0/16, which the concentrator itself"));
  EXPECT_THAT(refusal({net("10.0.0.0/8")}), HasSubstr("overlaps 10.20.0.0/16"));
  EXPECT_EQ(refusal({net("10.21.0.0/16")}), "");
}

TEST(PublicAddressesTest, WhatIsListenedOnIsNamedAndInThePlaceOfAnyTheAddressesWithADefaultRoute) {
  NetworkTable table;
  auto add = [&](int index, const char* name, std::vector<const char*> addresses, bool hasRoute) {
    Link link;
    link.index = index;
    link.name = name;
    link.up = true;
    for (const char* a : addresses)
      link.addresses.insert({*Address::parse(a), 24, 0, true, false, false});
    table.setLink(link);
    if (hasRoute) table.addDefaultRoute({Address::Family::kV4, index, {}, 0});
  };
  add(2, "eth0", {"203.0.113.7", "10.0.0.7"}, true);
  add(3, "lan", {"198.51.100.1"}, false);
  std::vector<Endpoint> any{*Endpoint::parse("0.0.0.0:4433")};
  PublicAddresses found = publicAddresses(any, table);
  EXPECT_THAT(found.addresses, ElementsAre(HostPort{"203.0.113.7", 4433}));
  EXPECT_EQ(found.note, "");
  EXPECT_THAT(publicAddresses({*Endpoint::parse("198.51.100.1:99")}, table).addresses,
              ElementsAre(HostPort{"198.51.100.1", 99}));
  add(2, "eth0", {"10.0.0.7"}, true);
  found = publicAddresses(any, table);
  EXPECT_THAT(found.addresses, ElementsAre(HostPort{"10.0.0.7", 4433}));
  EXPECT_THAT(found.note, HasSubstr("--address"));
}

// A virtual machine of a cloud: its public IPv4 address is the cloud's (1:1 NAT).
TEST(PublicAddressesTest, APublicAddressOfOneFamilyDoesNotHideThatTheOtherIsPrivate) {
  NetworkTable table;
  Link link;
  link.index = 2;
  link.name = "ens5";
  link.up = true;
  link.addresses = {{*Address::parse("10.0.0.7"), 24, 0, true, false, false},
                    {*Address::parse("2001:db8::7"), 64, 0, true, false, false}};
  table.setLink(link);
  for (Address::Family family : {Address::Family::kV4, Address::Family::kV6})
    table.addDefaultRoute({family, 2, {}, 0});
  std::vector<Endpoint> any{*Endpoint::parse("0.0.0.0:4433"), *Endpoint::parse("[::]:4433")};
  PublicAddresses found = publicAddresses(any, table);
  EXPECT_THAT(found.addresses, ElementsAre(HostPort{"2001:db8::7", 4433}));
  EXPECT_THAT(found.note, HasSubstr("10.0.0.7 is private, so a gateway without IPv6 cannot come"));
  EXPECT_THAT(found.note, HasSubstr("--address PUBLIC-IPV4:4433 --address [2001:db8::7]:4433"));
  EXPECT_EQ(publicAddresses({any[1]}, table).note, "") << "nobody is to come by IPv4";
  link.addresses.insert({*Address::parse("203.0.113.7"), 24, 0, true, false, false});
  table.setLink(link);
  EXPECT_EQ(publicAddresses(any, table).note, "");
}

}  // namespace
}  // namespace braid::address_plan_test
