// What a gateway needs the packet filter to let through.

#include "ctl/firewall/openings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/if_arp.h>

#include "host/fake/fake_network.h"

namespace braid::openings_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

struct OpeningsTest : testing::Test {
  OpeningsTest() {
    add("lo", {"127.0.0.1/8"});
    add("wan0", {"198.51.100.2/24", "2001:db8::2/64"});
    for (auto family : {Address::Family::kV4, Address::Family::kV6})
      host.edit().addDefaultRoute({family, last, {}, 0});
    add("lan0", {"192.168.1.1/24", "fd01::1/64"});
    config.tunnel.streams.on = false;
    config.peers.emplace_back().options.prefixes = {*Prefix::parse("10.99.0.1/32"),
                                                    *Prefix::parse("10.2.0.0/16")};
  }
  void add(const char* name, const std::vector<std::string>& addresses) {
    Link link;
    link.index = ++last;
    link.name = name;
    link.hardware = link.name == "lo" ? ARPHRD_LOOPBACK : ARPHRD_ETHER;
    link.up = true;
    for (const std::string& text : addresses) {
      size_t slash = text.find('/');
      link.addresses.insert({*Address::parse(text.substr(0, slash)),
                             static_cast<uint8_t>(std::stoi(text.substr(slash + 1))), 0, true,
                             false, false});
    }
    host.edit().setLink(link);
  }
  std::vector<Opening> openings(const std::vector<FoundRoute>& routes = {}) {
    host.changed();
    host.process(Time{});
    return openingsOf(config, host.table(), routes);
  }
  std::vector<std::string> texts(const std::vector<FoundRoute>& routes = {}) {
    std::vector<std::string> out;
    for (const Opening& opening : openings(routes)) out.push_back(opening.toString());
    return out;
  }
  void networks(std::initializer_list<const char*> all) {
    for (const char* text : all) config.device.networks.push_back(*Prefix::parse(text));
  }

  Config config;
  FakeHostNetwork host;
  int last = 0;
};

TEST_F(OpeningsTest, ALanAndTheTunnelInBothDirections) {
  EXPECT_THAT(texts(), IsEmpty());
  networks({"192.168.1.0/24"});
  EXPECT_THAT(texts(), ElementsAre("IPv4 packets from lan0 (192.168.1.0/24) to braid0",
                                   "IPv4 answers from braid0 to lan0 (192.168.1.0/24)",
                                   "new IPv4 connections from braid0 to lan0 (192.168.1.0/24)"));
  networks({"fd01::/64"});
  EXPECT_EQ(texts().size(), 3u) << "no peer has IPv6";
  config.device.routes = {*Prefix::parse("0.0.0.0/0"), *Prefix::parse("::/0")};
  EXPECT_THAT(texts(), ElementsAre("IPv4 packets from lan0 (192.168.1.0/24) to braid0",
                                   "IPv4 answers from braid0 to lan0 (192.168.1.0/24)",
                                   "IPv6 packets from lan0 (fd01::/64) to braid0",
                                   "IPv6 answers from braid0 to lan0 (fd01::/64)"))
      << "nobody of the internet has business in the LAN";
}

TEST_F(OpeningsTest, ThePacketsAreThoseOfAHostThereAndNotOfThisOne) {
  networks({"192.168.1.0/24"});
  NftPacket packet = openings()[0].samples.at(0);
  EXPECT_EQ(packet.hook, NftPacket::Hook::kForward);
  EXPECT_EQ(packet.in, "lan0");
  EXPECT_EQ(packet.inIndex, 3u);
  EXPECT_EQ(packet.out, "braid0");
  EXPECT_TRUE(Prefix::parse("192.168.1.0/24")->contains(*packet.source));
  EXPECT_NE(packet.source->toString(), "192.168.1.1");
  EXPECT_TRUE(Prefix::parse("10.2.0.0/16")->contains(*packet.destination));
}

TEST_F(OpeningsTest, ALanBehindAnotherRouterIsFoundByItsRoute) {
  networks({"172.20.0.0/16"});
  EXPECT_THAT(texts(), IsEmpty());
  FoundRoute route;
  route.spec.destination = *Prefix::parse("172.20.0.0/16");
  route.device = 3;
  route.unicast = true;
  EXPECT_THAT(texts({route}), Contains("IPv4 packets from lan0 (172.20.0.0/16) to braid0"));
}

TEST_F(OpeningsTest, TakenOverConnectionsCarryAMark) {
  networks({"192.168.1.0/24"});
  config.tunnel.streams.on = true;
  std::vector<Opening> all = openings();
  ASSERT_EQ(all[1].toString(),
            "TCP connections of lan0 (192.168.1.0/24) that are taken over for streams");
  EXPECT_EQ(all[1].rule.markMask, 0xc0u);
  ASSERT_EQ(all[1].samples.size(), 4u) << "80, 443, 8080, 8443";
  for (const NftPacket& packet : all[1].samples) {
    EXPECT_EQ(packet.hook, NftPacket::Hook::kInput);
    EXPECT_TRUE(packet.isForeign);
    EXPECT_EQ(packet.mark & all[1].rule.markMask, all[1].rule.mark);
  }
}

TEST_F(OpeningsTest, AConcentratorListensTranslatesAndForwards) {
  config.listen = {*Endpoint::parse("0.0.0.0:4433")};
  config.router.natV4 = true;
  PortForward& forward = config.router.forwards.emplace_back();
  forward.protocol = 6;
  forward.firstPort = forward.lastPort = 8443;
  forward.to = *Address::parse("10.2.0.9");
  forward.toPort = 443;
  EXPECT_THAT(texts(),
              ElementsAre("datagrams to UDP port 4433 that come in by wan0",
                          "IPv4 packets from braid0 to wan0", "IPv4 answers from wan0 to braid0",
                          "connections to port 443 of 10.2.0.9 (forwards) that come in by wan0"));
  EXPECT_TRUE(openings()[3].samples[0].isTranslated);
}

TEST_F(OpeningsTest, ABridgedTunnelPassesNoForwardChain) {
  networks({"192.168.1.0/24"});
  config.tunnel.mode = TunnelOptions::Mode::kTap;
  EXPECT_THAT(texts(), IsEmpty());
}

}  // namespace
}  // namespace braid::openings_test
