// Which addresses are opened for the page of a captive portal.

#include "gateway/uplinks/portal_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/unit/gateway/network/test_link.h"

namespace braid::portal_plan_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint32_t kMark = 0x41, kOtherMark = 0x42;

class PortalPlanTest : public testing::Test {
 protected:
  PortalPlanTest() {
    config_.uplinks.emplace_back().interface = "wlan0";
    config_.uplinks.emplace_back().interface = "wwan0";
    config_.device.routes = {*Prefix::parse("0.0.0.0/0"), *Prefix::parse("10.2.0.0/16")};
    config_.device.addresses = {{*Address::parse("10.66.99.2"), 24}};
    config_.device.networks = {*Prefix::parse("10.66.50.0/24")};
    config_.dns.servers = {*Address::parse("10.66.0.53")};
    config_.peers.emplace_back().options.prefixes = {*Prefix::parse("0.0.0.0/0"),
                                                     *Prefix::parse("10.66.3.0/24")};
    link(1, "lo", {"127.0.0.1/8"});
    link(2, "lan0", {"192.168.1.1/24"});
    link(3, "wlan0", {"10.66.0.2/16", "fe80::2/64"});
    link(4, "braid0", {"10.66.99.2/24"});
    link(5, "wwan0", {"100.70.0.2/16"});
    link(6, "wan0", {"198.51.100.2/24"});
    host_.addDefaultRoute({Address::Family::kV4, 6, *Address::parse("198.51.100.1"), 100});
  }

  void link(int index, const char* name, const std::vector<std::string>& addresses) {
    host_.setLink(test::linkOf(index, name, addresses));
  }
  void page(const char* text, uint16_t port = 80) {
    portals_[0].addresses = {*Address::parse(text)};
    portals_[0].port = port;
  }
  PortalPlan plan() const { return planPortals(config_, host_, portals_, situation_); }
  std::vector<std::string> opened() const {
    std::vector<std::string> out;
    for (const PortalRules::Way& way : plan().rules.ways)
      out.push_back(way.interface + " " + way.address.toString());
    return out;
  }
  std::string told() const { return plan().told["wifi"]; }

  Config config_;
  NetworkTable host_;
  std::vector<Portal> portals_{{"wifi", "http://10.66.0.1/", 80, {*Address::parse("10.66.0.1")}}};
  PortalSituation situation_{
      "braid0",
      0xff,
      {{"wifi", "wlan0", kMark, true, false}, {"lte", "wwan0", kOtherMark, true, false}},
      false};
};

TEST_F(PortalPlanTest, WithoutAPortalNothingIsOpened) {
  portals_.clear();
  EXPECT_THAT(opened(), IsEmpty());
}

TEST_F(PortalPlanTest, ThePageOnTheUplinksLinkIsOpenedWhileNoPeerIsUp) {
  page("10.66.0.1", 8080);
  EXPECT_THAT(opened(), ElementsAre("wlan0 192.0.2.1", "wlan0 10.66.0.1"));
  for (const PortalRules::Way& way : plan().rules.ways) {
    EXPECT_THAT(way.ports, ElementsAre(80, 443, 8080));
    EXPECT_EQ(way.mark, kMark);
  }
  EXPECT_THAT(plan().rules.from, ElementsAre("lan0"))
      << "no uplink, tunnel, or interface with a default route";
  EXPECT_EQ(plan().rules.markMask, 0xffu);
  EXPECT_EQ(told(), "TCP ports 80, 443, 8080 of 192.0.2.1, 10.66.0.1");
}

// Found by review: while another uplink worked, a portal could still take any private destination
// out of the tunnel.
TEST_F(PortalPlanTest, WhileAPeerIsUpOnlyWhatNobodyHasIsOpened) {
  situation_.peerUp = true;
  config_.portals = PortalCheck::kAny;
  EXPECT_THAT(opened(), ElementsAre("wlan0 192.0.2.1"));
  EXPECT_THAT(told(), HasSubstr("not 10.66.0.1: a peer is up"));
}

TEST_F(PortalPlanTest, OtherAddressesOnlyWithAny) {
  for (const char* text : {"10.67.0.1", "198.18.0.7", "100.70.0.9"}) {
    page(text);
    config_.portals = PortalCheck::kOn;
    EXPECT_THAT(opened(), ElementsAre("wlan0 192.0.2.1")) << text;
    EXPECT_THAT(told(), HasSubstr("not on that uplink's own link"));
    config_.portals = PortalCheck::kAny;
    EXPECT_THAT(opened(), ElementsAre("wlan0 192.0.2.1", std::string("wlan0 ") + text));
  }
}

TEST_F(PortalPlanTest, WhatIsKnownIsNeverOpened) {
  config_.portals = PortalCheck::kAny;
  // LAN, device.networks, device.addresses, dns.servers, device.routes, a peer's prefix
  for (const char* text : {"192.168.1.9", "10.66.50.9", "10.66.99.1", "10.66.0.53", "10.2.0.9",
                           "10.66.3.9", "198.51.100.7"}) {
    page(text);
    EXPECT_THAT(opened(), ElementsAre("wlan0 192.0.2.1")) << text;
    EXPECT_THAT(told(), HasSubstr("not " + std::string(text) + ": it is of the LAN"));
  }
  for (const char* text : {"127.0.0.1", "169.254.169.254", "fe80::1", "10.66.0.2", "224.0.0.1"}) {
    page(text);
    EXPECT_THAT(opened(), ElementsAre("wlan0 192.0.2.1")) << text;
  }
  config_.peers[0].options.prefixes.push_back(*Prefix::parse("192.0.2.0/24"));
  EXPECT_THAT(opened(), IsEmpty()) << "somebody has it here";
  EXPECT_THAT(told(), HasSubstr("nothing is opened; not 192.0.2.1: it is of the LAN, the tunnel"));
}

// A lease may say that everything is on the link.
TEST_F(PortalPlanTest, AHalfOfTheInternetIsNoLink) {
  page("10.67.0.1");
  link(3, "wlan0", {"10.66.0.2/1"});
  EXPECT_THAT(opened(), ElementsAre("wlan0 192.0.2.1"));
}

TEST_F(PortalPlanTest, AnUplinkWithoutARouterReachesItsLinkOnly) {
  situation_.exits[0].v4 = false;
  EXPECT_THAT(opened(), ElementsAre("wlan0 10.66.0.1"));
  config_.portals = PortalCheck::kAny;
  page("10.67.0.1");
  EXPECT_THAT(opened(), IsEmpty());
  EXPECT_THAT(told(), HasSubstr("not 10.67.0.1: that uplink has no router"));
}

TEST_F(PortalPlanTest, WithoutAMarkTheHostsOwnRoutesLeadThere) {
  situation_.exits[0].mark = 0;
  EXPECT_THAT(opened(), IsEmpty());
  EXPECT_THAT(told(), HasSubstr("the host's own routes lead there"));
}

TEST_F(PortalPlanTest, TheTwoAddressesThatNobodyHasAreOpenedForTheFamiliesOfTheUplink) {
  situation_.exits[0].v6 = true;
  portals_[0].addresses.clear();  // a page whose name has no address yet
  portals_[0].port = 443;
  EXPECT_THAT(opened(), ElementsAre("wlan0 192.0.2.1", "wlan0 3fff::1"));
  EXPECT_EQ(told(), "TCP ports 80, 443 of 192.0.2.1, 3fff::1");
  situation_.peerUp = true;
  EXPECT_THAT(opened(), ElementsAre("wlan0 192.0.2.1", "wlan0 3fff::1"));
  situation_.exits[0].v4 = false;
  EXPECT_THAT(opened(), ElementsAre("wlan0 3fff::1"));
}

// The plan's portals are in the order of their names, which says nothing.
TEST_F(PortalPlanTest, WhatTwoPortalsHaveLeadsToTheFirstOfTheConfiguration) {
  portals_.insert(portals_.begin(),
                  {"lte", "http://100.70.0.1/", 80, {*Address::parse("100.70.0.1")}});
  EXPECT_THAT(opened(), ElementsAre("wlan0 192.0.2.1", "wlan0 10.66.0.1", "wwan0 100.70.0.1"));
  EXPECT_EQ(plan().told["lte"],
            "TCP ports 80, 443 of 100.70.0.1; not 192.0.2.1: it leads to the portal of wifi");
  EXPECT_EQ(told(), "TCP ports 80, 443 of 192.0.2.1, 10.66.0.1");
  portals_.pop_back();
  EXPECT_THAT(opened(), ElementsAre("wwan0 192.0.2.1", "wwan0 100.70.0.1")) << "after the login";
}

// As two modems of one model have.
TEST_F(PortalPlanTest, ThePageOfTwoPortalsWithOneAddressLeadsToTheFirst) {
  link(5, "wwan0", {"10.66.0.3/16"});
  portals_.push_back({"lte", "http://10.66.0.1/", 80, {*Address::parse("10.66.0.1")}});
  EXPECT_THAT(opened(), ElementsAre("wlan0 192.0.2.1", "wlan0 10.66.0.1"));
  EXPECT_EQ(plan().told["lte"],
            "nothing is opened; not 192.0.2.1: it leads to the portal of wifi; not 10.66.0.1: it "
            "leads to the portal of wifi");
}

}  // namespace
}  // namespace braid::portal_plan_test
