#include "gateway/uplinks/uplink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "host/fake/fake_host.h"

namespace braid::uplink_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Family = Address::Family;
using Gateway = UplinkConfig::Gateway;

Address ip(const char* text) {
  return *Address::parse(text);
}

LinkAddress on(const char* text, uint8_t scope = 0) {
  Address a = ip(text);
  LinkAddress out;
  out.address = a;
  out.prefixLength = a.isV4() ? 24 : 64;
  out.scope = scope;
  return out;
}

Link link(int index, const char* name, std::set<LinkAddress> addresses, bool up = true) {
  Link l;
  l.index = index;
  l.name = name;
  l.up = up;
  l.mtu = 1500;
  l.addresses = std::move(addresses);
  return l;
}

UplinkConfig uplink(const char* name, const char* interface) {
  UplinkConfig c;
  c.name = name;
  c.interface = interface;
  c.gateway = Gateway::kNone;
  return c;
}

UplinkConfig withGateway(UplinkConfig c, const char* gateway) {
  c.gateway = Gateway::kAddress;
  c.gateways = {ip(gateway)};
  return c;
}

class UplinkTest : public testing::Test, private SendObserver {
 protected:
  std::vector<std::string> locals() const {
    std::vector<std::string> out;
    for (const auto& [id, socket] : host_.sockets())
      out.push_back(socket->options().local.toString() + "@" + socket->options().interface);
    return out;
  }
  void onSendError(const Datagram&, int) override {}
  void onTooBig(const Datagram&) override {}

  FakeClock clock_;
  FakeHost host_{clock_, 1};
  NetworkTable& table_ = host_.net().edit();
  PacketPool pool_{1500, 64};
  SocketTable sockets_{host_, pool_, false, *this, [](auto) { return size_t{0}; }};
  SocketIds ids_;
  Uplinks uplinks_{sockets_, host_.net(), ids_};
};

TEST_F(UplinkTest, OpensOneSocketPerFamilyAndSubflow) {
  table_.setLink(link(2, "eth1", {on("192.0.2.5"), on("2001:db8::5")}));
  UplinkConfig c = uplink("dsl", "eth1");
  c.subflows = 2;
  uplinks_.configure({c}, table_);
  EXPECT_THAT(locals(), ElementsAre("192.0.2.5@eth1", "192.0.2.5@eth1", "2001:db8::5@eth1",
                                    "2001:db8::5@eth1"));
  auto specs = uplinks_.specs();
  ASSERT_EQ(specs.size(), 1u);
  EXPECT_EQ(specs[0].name, "dsl");
  EXPECT_TRUE(specs[0].up);
  ASSERT_EQ(specs[0].sockets.size(), 4u);
  EXPECT_EQ(specs[0].sockets[0].family, Family::kV4);
  EXPECT_EQ(specs[0].sockets[3].family, Family::kV6);
  EXPECT_THAT(host_.net().configured(), IsEmpty());
}

TEST_F(UplinkTest, WaitsForInterfaceThenLinkThenAddress) {
  uplinks_.configure({uplink("lte", "wwan0")}, table_);
  EXPECT_FALSE(uplinks_.specs()[0].up);
  EXPECT_THAT(uplinks_.takeNotes(),
              ElementsAre("uplink lte is down: there is no interface wwan0; plug it in, or name "
                          "another one ('ip link' lists them)"));
  table_.setLink(link(7, "wwan0", {}, false));
  EXPECT_FALSE(uplinks_.update(table_));
  EXPECT_THAT(uplinks_.takeNotes(),
              ElementsAre(HasSubstr("link wwan0 is down; switch it on: ip link set wwan0 up")));
  Link dark = link(7, "wwan0", {}, false);
  dark.on = true;
  table_.setLink(dark);
  EXPECT_FALSE(uplinks_.update(table_));
  EXPECT_THAT(uplinks_.takeNotes(), ElementsAre(HasSubstr("is down; look at its cable")));
  table_.setLink(link(7, "wwan0", {}));
  EXPECT_FALSE(uplinks_.update(table_));
  EXPECT_THAT(uplinks_.takeNotes(), ElementsAre(HasSubstr("no usable address")));
  EXPECT_THAT(host_.everOpened(), IsEmpty());
  table_.setLink(link(7, "wwan0", {on("192.0.2.5")}));
  EXPECT_TRUE(uplinks_.update(table_));
  EXPECT_TRUE(uplinks_.specs()[0].up);
  EXPECT_EQ(host_.everOpened().size(), 1u);
  EXPECT_THAT(uplinks_.takeNotes(), ElementsAre("uplink lte is up, 192.0.2.5"));
}

TEST_F(UplinkTest, LostCarrierKeepsTheSockets) {
  table_.setLink(link(2, "eth1", {on("192.0.2.5")}));
  uplinks_.configure({uplink("dsl", "eth1")}, table_);
  auto before = host_.sockets();
  table_.setLink(link(2, "eth1", {on("192.0.2.5")}, false));
  EXPECT_TRUE(uplinks_.update(table_));
  EXPECT_FALSE(uplinks_.specs()[0].up);
  EXPECT_EQ(uplinks_.specs()[0].sockets.size(), 1u);
  EXPECT_FALSE(uplinks_.update(table_)) << "nothing changed";
  table_.setLink(link(2, "eth1", {on("192.0.2.5")}));
  EXPECT_TRUE(uplinks_.update(table_));
  EXPECT_TRUE(uplinks_.specs()[0].up);
  EXPECT_EQ(host_.everOpened().size(), 1u);
}

TEST_F(UplinkTest, LostAddressClosesAndANewOneOpensUnderANewId) {
  table_.setLink(link(2, "wlan0", {on("192.0.2.5")}));
  uplinks_.configure({uplink("wifi", "wlan0")}, table_);
  table_.setLink(link(2, "wlan0", {}));
  EXPECT_TRUE(uplinks_.update(table_));
  EXPECT_THAT(host_.sockets(), IsEmpty());
  EXPECT_THAT(uplinks_.specs()[0].sockets, IsEmpty());
  table_.setLink(link(2, "wlan0", {on("198.51.100.5")}));
  EXPECT_TRUE(uplinks_.update(table_));
  ASSERT_EQ(host_.everOpened().size(), 2u);
  EXPECT_NE(host_.everOpened()[0], host_.everOpened()[1]);
}

TEST_F(UplinkTest, AReplacedInterfaceOfTheSameNameGetsNewSockets) {
  table_.setLink(link(2, "wwan0", {on("192.0.2.5")}));
  uplinks_.configure({uplink("lte", "wwan0")}, table_);
  table_.removeLink(2);
  table_.setLink(link(9, "wwan0", {on("192.0.2.5")}));
  EXPECT_TRUE(uplinks_.update(table_));
  EXPECT_EQ(host_.everOpened().size(), 2u);
  EXPECT_EQ(host_.sockets().size(), 1u);
}

TEST_F(UplinkTest, AnAddressBesideTheOneInUseDisturbsNothing) {
  table_.setLink(link(2, "eth1", {on("192.0.2.5"), on("2001:db8::5")}));
  uplinks_.configure({uplink("dsl", "eth1")}, table_);
  table_.setLink(
      link(2, "eth1", {on("192.0.2.1"), on("192.0.2.5"), on("2001:db8::1"), on("2001:db8::5")}));
  EXPECT_FALSE(uplinks_.update(table_));
  EXPECT_EQ(host_.everOpened().size(), 2u);
}

TEST_F(UplinkTest, OnlyTheFamilyThatMovedIsReopened) {
  table_.setLink(link(2, "eth1", {on("192.0.2.5"), on("2001:db8::5")}));
  uplinks_.configure({uplink("dsl", "eth1")}, table_);
  table_.setLink(link(2, "eth1", {on("192.0.2.5"), on("2001:db8::6")}));
  EXPECT_TRUE(uplinks_.update(table_));
  EXPECT_EQ(host_.everOpened().size(), 3u);
  EXPECT_THAT(locals(), ElementsAre("192.0.2.5@eth1", "2001:db8::6@eth1"));
}

TEST_F(UplinkTest, ChoosesGlobalStableAddresses) {
  LinkAddress tentative = on("2001:db8::1"), temporary = on("2001:db8::2"), old = on("2001:db8::3");
  tentative.usable = false;
  temporary.temporary = true;
  old.deprecated = true;
  table_.setLink(link(2, "eth1",
                      {on("fe80::1", 253), on("169.254.1.1", 253), tentative, temporary, old,
                       on("2001:db8::9"), on("fd00::1")}));
  UplinkDecision d = decideUplink(uplink("dsl", "eth1"), {}, table_, {}, {});
  EXPECT_EQ(d.v6, ip("2001:db8::9"));
  EXPECT_EQ(d.v4, Address{});
  d = decideUplink(uplink("dsl", "eth1"), {}, table_, {}, old.address);
  EXPECT_EQ(d.v6, ip("2001:db8::9")) << "a deprecated address is left";
  d = decideUplink(uplink("dsl", "eth1"), {}, table_, {}, temporary.address);
  EXPECT_EQ(d.v6, temporary.address) << "a good address in use is kept";
}

TEST_F(UplinkTest, ConfiguredSourcesAreTheOnlyOnes) {
  table_.setLink(link(2, "eth1", {on("192.0.2.5"), on("192.0.2.6"), on("2001:db8::5")}));
  UplinkConfig c = uplink("dsl", "eth1");
  c.sources = {ip("192.0.2.6")};
  uplinks_.configure({c}, table_);
  EXPECT_THAT(locals(), ElementsAre("192.0.2.6@eth1"));
  table_.setLink(link(2, "eth1", {on("192.0.2.5")}));
  uplinks_.update(table_);
  EXPECT_FALSE(uplinks_.specs()[0].up);
  EXPECT_THAT(uplinks_.takeNotes().back(), HasSubstr("configured source"));
}

TEST_F(UplinkTest, GatewayAddressInstallsATableOfItsOwn) {
  table_.setLink(link(2, "eth1", {on("192.0.2.5"), on("2001:db8::5")}));
  UplinkConfig c = withGateway(uplink("dsl", "eth1"), "192.0.2.1");
  uplinks_.configure({c}, table_);
  EXPECT_THAT(host_.net().configured(),
              ElementsAre("IPv4 rule 6600: oif eth1 lookup 254 suppress_prefixlength 0",
                          "IPv4 rule 6601: oif eth1 lookup 6600",
                          "route default via 192.0.2.1 dev eth1 table 6600"));
  uplinks_.close();
  EXPECT_THAT(host_.net().configured(), IsEmpty());
  EXPECT_THAT(host_.sockets(), IsEmpty());
}

TEST_F(UplinkTest, RepliesLeaveByTheInterfacesOwnDefaultRoute) {
  table_.setLink(link(2, "eth1", {on("192.0.2.5"), on("2001:db8::5")}));
  UplinkConfig c = uplink("dsl", "eth1");
  c.gateway = Gateway::kAuto;
  table_.addDefaultRoute({Family::kV4, 2, ip("192.0.2.9"), 700});
  table_.addDefaultRoute({Family::kV4, 2, ip("192.0.2.1"), 100});
  table_.addDefaultRoute({Family::kV4, 3, ip("198.51.100.1"), 0});
  uplinks_.keepReplies(true);
  uplinks_.configure({c}, table_);
  EXPECT_THAT(host_.net().configured(),
              ElementsAre("IPv4 rule 6500: fwmark 0x40/0xff lookup 254 suppress_prefixlength 0",
                          "IPv4 rule 6501: fwmark 0x40/0xff lookup 6600",
                          "route default via 192.0.2.1 dev eth1 table 6600"));
  ASSERT_EQ(uplinks_.replyMarks().size(), 1u);
  EXPECT_EQ(uplinks_.replyMarks()[0].interface, "eth1");
  EXPECT_EQ(uplinks_.replyMarks()[0].mark, 0x40u);
  table_.removeDefaultRoutes(Family::kV4, 100);  // a lease with another router
  uplinks_.update(table_);
  EXPECT_TRUE(host_.net().configured().contains("route default via 192.0.2.9 dev eth1 table 6600"));
  EXPECT_EQ(host_.net().configured().size(), 3u);
  uplinks_.keepReplies(false);
  uplinks_.update(table_);
  EXPECT_THAT(host_.net().configured(), IsEmpty());
}

TEST_F(UplinkTest, RoutesAreRenewedAfterTheLinkWasSwitchedOff) {
  Link l = link(2, "eth1", {on("192.0.2.5")});
  table_.setLink(l);
  UplinkConfig c = withGateway(uplink("dsl", "eth1"), "192.0.2.1");
  uplinks_.configure({c}, table_);
  EXPECT_EQ(host_.net().adds(), 3);
  uplinks_.update(table_);
  EXPECT_EQ(host_.net().adds(), 3);
  ++l.switchedOff;  // off and on again between two checks
  table_.setLink(l);
  uplinks_.update(table_);
  EXPECT_EQ(host_.net().adds(), 6);
}

TEST_F(UplinkTest, AutomaticGatewayWarnsWithoutADefaultRoute) {
  table_.setLink(link(2, "eth1", {on("192.0.2.5")}));
  UplinkConfig c = uplink("dsl", "eth1");
  c.gateway = Gateway::kAuto;
  UplinkDecision d = decideUplink(c, {}, table_, {}, {});
  EXPECT_TRUE(d.up);
  EXPECT_THAT(d.reason, HasSubstr("no IPv4 default route"));
  table_.addDefaultRoute({Family::kV4, 2, ip("192.0.2.1"), 100});
  d = decideUplink(c, {}, table_, {}, {});
  EXPECT_EQ(d.reason, "");
  EXPECT_THAT(d.routes, IsEmpty());
}

TEST_F(UplinkTest, AMissingDefaultRouteIsReportedOnlyWhenItStaysAway) {
  UplinkConfig c = uplink("dsl", "eth1");
  c.gateway = Gateway::kAuto;
  table_.setLink(link(2, "eth1", {on("192.0.2.5")}));
  uplinks_.configure({c}, table_);
  EXPECT_THAT(uplinks_.takeNotes(), ElementsAre("uplink dsl is up, 192.0.2.5"));
  EXPECT_TRUE(uplinks_.wantsRetry());
  table_.addDefaultRoute({Family::kV4, 2, ip("192.0.2.1"), 100});
  uplinks_.update(table_);
  uplinks_.warn();
  EXPECT_FALSE(uplinks_.wantsRetry());
  EXPECT_THAT(uplinks_.takeNotes(), IsEmpty());

  table_.forgetRoutes();
  uplinks_.update(table_);
  EXPECT_THAT(uplinks_.takeNotes(), IsEmpty());
  for (int i = 0; i < 2; ++i) {
    uplinks_.update(table_);
    uplinks_.warn();
  }
  EXPECT_THAT(uplinks_.takeNotes(), ElementsAre(HasSubstr("no IPv4 default route")));
  EXPECT_FALSE(uplinks_.wantsRetry());
}

TEST_F(UplinkTest, RefusedSocketIsRetriedAndDoesNotTakeTheOtherFamily) {
  table_.setLink(link(2, "eth1", {on("192.0.2.5"), on("2001:db8::5")}));
  host_.refuseLocal({ip("2001:db8::5")});
  uplinks_.configure({uplink("dsl", "eth1")}, table_);
  EXPECT_TRUE(uplinks_.wantsRetry());
  EXPECT_TRUE(uplinks_.specs()[0].up);
  EXPECT_THAT(uplinks_.takeNotes(), ElementsAre(HasSubstr("refused 2001:db8::5")));
  host_.refuseLocal({});
  EXPECT_TRUE(uplinks_.update(table_));
  EXPECT_FALSE(uplinks_.wantsRetry());
  EXPECT_EQ(uplinks_.specs()[0].sockets.size(), 2u);
}

TEST_F(UplinkTest, AFamilyThatTheKernelLacksIsNamedOnceAndTheOtherWorks) {
  table_.setLink(link(2, "eth1", {on("192.0.2.5"), on("2001:db8::5")}));
  host_.refuseLocal({ip("2001:db8::5")}, EAFNOSUPPORT);
  uplinks_.configure({uplink("dsl", "eth1")}, table_);
  EXPECT_TRUE(uplinks_.specs()[0].up);
  EXPECT_THAT(locals(), ElementsAre("192.0.2.5@eth1"));
  EXPECT_THAT(uplinks_.takeNotes(), ElementsAre(HasSubstr("refused 2001:db8::5")));
  EXPECT_FALSE(uplinks_.update(table_)) << "tried again, to no effect";
  EXPECT_THAT(uplinks_.takeNotes(), IsEmpty());
  EXPECT_THAT(locals(), ElementsAre("192.0.2.5@eth1"));
}

TEST_F(UplinkTest, RefusedRoutingKeepsTheUplinkDownUntilItWorks) {
  table_.setLink(link(2, "eth1", {on("192.0.2.5")}));
  UplinkConfig c = withGateway(uplink("dsl", "eth1"), "192.0.2.1");
  host_.net().refuse(true);
  uplinks_.configure({c}, table_);
  EXPECT_FALSE(uplinks_.specs()[0].up);
  EXPECT_TRUE(uplinks_.wantsRetry());
  host_.net().refuse(false);
  EXPECT_TRUE(uplinks_.update(table_));
  EXPECT_TRUE(uplinks_.specs()[0].up);
  EXPECT_EQ(host_.net().configured().size(), 3u);
}

// After the link was switched off, all routes are added again. Even when one is refused, the uplink
// still knows all of them.
TEST_F(UplinkTest, RoutesThatCouldNotBeRenewedAreTakenAwayWithTheirUplink) {
  Link l = link(2, "eth1", {on("192.0.2.5")});
  table_.setLink(l);
  UplinkConfig c = withGateway(uplink("dsl", "eth1"), "192.0.2.1");
  uplinks_.configure({c}, table_);
  const std::set<std::string> whole = host_.net().configured();
  ASSERT_EQ(whole.size(), 3u);
  for (const std::string& refused : whole) {
    host_.net().refuseLines({refused});
    ++l.switchedOff;
    table_.setLink(l);
    uplinks_.update(table_);
    EXPECT_TRUE(uplinks_.wantsRetry()) << refused;
    host_.net().refuseLines({});
    uplinks_.configure({}, table_);
    EXPECT_THAT(host_.net().configured(), IsEmpty()) << refused;
    EXPECT_THAT(host_.net().restore().back, IsEmpty()) << refused;
    uplinks_.configure({c}, table_);
    ASSERT_EQ(host_.net().configured(), whole);
  }
}

TEST_F(UplinkTest, WhatCannotBeTakenAwayDoesNotKeepTheRest) {
  table_.setLink(link(2, "eth1", {on("192.0.2.5")}));
  UplinkConfig c = withGateway(uplink("dsl", "eth1"), "192.0.2.1");
  const std::string first = "IPv4 rule 6600: oif eth1 lookup 254 suppress_prefixlength 0";
  uplinks_.configure({c}, table_);
  uplinks_.takeNotes();
  host_.net().refuseLines({first});
  uplinks_.configure({}, table_);
  EXPECT_THAT(host_.net().configured(), ElementsAre(first));
  EXPECT_THAT(uplinks_.takeNotes(), ElementsAre(HasSubstr("refused to remove " + first)));
  EXPECT_THAT(host_.net().restore().back, IsEmpty());
}

TEST_F(UplinkTest, ReloadKeepsWhatDidNotChange) {
  table_.setLink(link(2, "eth1", {on("192.0.2.5")}));
  table_.setLink(link(3, "eth2", {on("198.51.100.5")}));
  table_.setLink(link(4, "eth3", {on("203.0.113.5")}));
  UplinkConfig a = withGateway(uplink("a", "eth1"), "192.0.2.1");
  UplinkConfig b = withGateway(uplink("b", "eth2"), "198.51.100.1");
  uplinks_.configure({a, b}, table_);
  SocketId keptId = uplinks_.specs()[1].sockets[0].id;
  UplinkConfig c = withGateway(uplink("c", "eth3"), "203.0.113.1");
  uplinks_.configure({c, b}, table_);
  auto specs = uplinks_.specs();
  EXPECT_EQ(specs[0].name, "c");
  EXPECT_EQ(specs[1].name, "b");
  EXPECT_EQ(specs[1].sockets[0].id, keptId);
  EXPECT_THAT(locals(), ElementsAre("198.51.100.5@eth2", "203.0.113.5@eth3"));
  EXPECT_TRUE(
      host_.net().configured().contains("route default via 198.51.100.1 dev eth2 table 6601"));
  EXPECT_TRUE(
      host_.net().configured().contains("route default via 203.0.113.1 dev eth3 table 6600"));
  EXPECT_EQ(host_.net().configured().size(), 6u);
}

// Two equal modems: what each of them is called depends on which one is found first.
TEST_F(UplinkTest, ModemsThatSwapTheirNamesKeepTheirUplinks) {
  auto modem = [](int index, const char* name, const char* port, const char* address) {
    Link l = link(index, name, {on(address)});
    l.mac = "0c:5b:8f:27:9a:64";  // the maker gives it to all
    l.path = std::string("pci-0000:00:14.0-usb-0:") + port + ":1.0";
    return l;
  };
  auto at = [](const char* name, const char* port) {
    UplinkConfig c = uplink(name, "");
    c.path = std::string("pci-0000:00:14.0-usb-0:") + port + ":1.0";
    return c;
  };
  table_.setLink(modem(3, "usb0", "1", "192.0.2.5"));
  table_.setLink(modem(4, "usb1", "2", "198.51.100.5"));
  UplinkConfig capped = at("capped", "1");
  capped.preference.use = PathUse::kMetered;
  uplinks_.configure({capped, at("free", "2")}, table_);
  EXPECT_THAT(locals(), ElementsAre("192.0.2.5@usb0", "198.51.100.5@usb1"));

  table_.removeLink(3);
  table_.removeLink(4);
  EXPECT_TRUE(uplinks_.update(table_));
  EXPECT_THAT(locals(), IsEmpty());
  table_.setLink(modem(5, "usb0", "2", "198.51.100.5"));
  table_.setLink(modem(6, "usb1", "1", "192.0.2.5"));
  EXPECT_TRUE(uplinks_.update(table_));
  EXPECT_THAT(locals(), ElementsAre("192.0.2.5@usb1", "198.51.100.5@usb0"));
  EXPECT_EQ(uplinks_.specs()[0].name, "capped");
  EXPECT_EQ(uplinks_.specs()[0].preference.use, PathUse::kMetered);
  EXPECT_EQ(uplinks_.status()[0].interface, "usb1");
}

TEST_F(UplinkTest, AnInterfaceIsFoundByItsMacOrByAnAltname) {
  Link eth = link(3, "enp3s0", {on("192.0.2.5")});
  eth.mac = eth.ownMac = "02:00:5e:00:53:01";
  eth.altnames = {"wan-left"};
  Link vlan = link(4, "enp3s0.7", {on("198.51.100.5")});
  vlan.mac = eth.mac;
  vlan.kind = "vlan";
  vlan.lower = 3;
  table_.setLink(vlan);
  table_.setLink(eth);
  UplinkConfig byMac = uplink("mac", "");
  byMac.mac = "02:00:5e:00:53:01";
  uplinks_.configure({byMac}, table_);
  EXPECT_THAT(locals(), ElementsAre("192.0.2.5@enp3s0"));
  uplinks_.configure({uplink("alt", "wan-left")}, table_);
  EXPECT_THAT(locals(), ElementsAre("192.0.2.5@enp3s0"));
}

TEST_F(UplinkTest, OneMacOfTwoInterfacesNamesNeither) {
  Link a = link(3, "usb0", {on("192.0.2.5")}), b = link(4, "usb1", {on("198.51.100.5")});
  a.mac = b.mac = "0c:5b:8f:27:9a:64";
  table_.setLink(a);
  table_.setLink(b);
  UplinkConfig c = uplink("lte", "");
  c.mac = a.mac;
  uplinks_.configure({c}, table_);
  EXPECT_THAT(locals(), IsEmpty());
  EXPECT_THAT(uplinks_.takeNotes(),
              ElementsAre("uplink lte is down: more than one interface with MAC "
                          "0c:5b:8f:27:9a:64 (usb0, usb1); name it by `path`, where it is plugged "
                          "in"));
}

TEST_F(UplinkTest, ARenamedInterfaceKeepsItsSocketsAndGetsItsRulesAnew) {
  Link l = link(3, "eth1", {on("192.0.2.5")});
  l.mac = "02:00:5e:00:53:01";
  table_.setLink(l);
  UplinkConfig c = withGateway(uplink("dsl", ""), "192.0.2.1");
  c.mac = l.mac;
  uplinks_.configure({c}, table_);
  SocketId id = uplinks_.specs()[0].sockets.at(0).id;
  l.name = "wan0";
  table_.setLink(l);
  uplinks_.update(table_);
  EXPECT_EQ(uplinks_.specs()[0].sockets.at(0).id, id) << "the kernel binds to the interface";
  EXPECT_THAT(host_.net().configured(),
              ElementsAre("IPv4 rule 6600: oif wan0 lookup 254 suppress_prefixlength 0",
                          "IPv4 rule 6601: oif wan0 lookup 6600",
                          "route default via 192.0.2.1 dev wan0 table 6600"));
}

TEST_F(UplinkTest, RefusedRoutesOfOneFamilyLeaveTheOther) {
  table_.setLink(link(2, "eth1", {on("192.0.2.5"), on("2001:db8::5")}));
  UplinkConfig c = withGateway(uplink("dsl", "eth1"), "192.0.2.1");
  c.gateways.push_back(ip("2001:db8::1"));
  host_.net().refuseLines({"IPv6 rule 6601: oif eth1 lookup 6600"});
  uplinks_.configure({c}, table_);
  EXPECT_TRUE(uplinks_.specs()[0].up);
  EXPECT_THAT(locals(), ElementsAre("192.0.2.5@eth1"));
  SocketId id = uplinks_.specs()[0].sockets.at(0).id;
  EXPECT_TRUE(uplinks_.wantsRetry());
  host_.net().refuseLines({});
  EXPECT_TRUE(uplinks_.update(table_));
  EXPECT_THAT(locals(), ElementsAre("192.0.2.5@eth1", "2001:db8::5@eth1"));
  EXPECT_EQ(uplinks_.specs()[0].sockets.at(0).id, id);
  EXPECT_FALSE(uplinks_.wantsRetry());
}

// The provider has replaced the prefix, and the router has not taken the old one back.
TEST_F(UplinkTest, AnAddressWhosePathsAreAllDeadGivesWay) {
  table_.setLink(link(2, "eth1", {on("192.0.2.5"), on("2001:db8:1::5"), on("2001:db8:2::5")}));
  uplinks_.configure({uplink("dsl", "eth1")}, table_);
  ASSERT_THAT(locals(), ElementsAre("192.0.2.5@eth1", "2001:db8:1::5@eth1"));
  SocketId v4 = uplinks_.specs()[0].sockets.at(0).id;
  EXPECT_TRUE(uplinks_.hasAlternatives(table_));
  const std::set<Family> both{Family::kV4, Family::kV6};
  Time now{1h};
  EXPECT_FALSE(uplinks_.judgeSources({v4}, both, table_, now));
  EXPECT_FALSE(uplinks_.judgeSources({v4}, both, table_, now + 14s));
  uplinks_.takeNotes();
  EXPECT_TRUE(uplinks_.judgeSources({v4}, both, table_, now + 15s));
  EXPECT_THAT(locals(), ElementsAre("192.0.2.5@eth1", "2001:db8:2::5@eth1"));
  EXPECT_EQ(uplinks_.specs()[0].sockets.at(0).id, v4) << "the other family goes on";
  EXPECT_THAT(uplinks_.takeNotes(),
              testing::Contains("uplink dsl: nothing comes back to 2001:db8:1::5, another address "
                                "of eth1 is tried"));
  // What the kernel prefers does not bring the dead one back.
  EXPECT_FALSE(uplinks_.update(table_));
  EXPECT_THAT(locals(), ElementsAre("192.0.2.5@eth1", "2001:db8:2::5@eth1"));
  // When nothing comes back to the new one either, the first is tried again.
  EXPECT_FALSE(uplinks_.judgeSources({v4}, both, table_, now + 16s));
  EXPECT_TRUE(uplinks_.judgeSources({v4}, both, table_, now + 31s));
  EXPECT_THAT(locals(), ElementsAre("192.0.2.5@eth1", "2001:db8:1::5@eth1"));
}

TEST_F(UplinkTest, AnAddressIsNotJudgedWithoutACallInItsFamily) {
  table_.setLink(link(2, "eth1", {on("192.0.2.5"), on("2001:db8:1::5"), on("2001:db8:2::5")}));
  uplinks_.configure({uplink("dsl", "eth1")}, table_);
  Time now{1h};
  for (Duration at : {0s, 20s, 40s})
    EXPECT_FALSE(uplinks_.judgeSources({}, {Family::kV4}, table_, now + at));
  EXPECT_THAT(locals(), ElementsAre("192.0.2.5@eth1", "2001:db8:1::5@eth1"));
}

TEST(SocketIdsTest, NamesAreUniqueNotReusedSoonAndNeverZero) {
  SocketIds ids;
  SocketId kept = ids.take();
  std::set<SocketId> seen;
  for (int i = 0; i < 65534; ++i) {
    SocketId id = ids.take();
    EXPECT_NE(id, 0);
    EXPECT_NE(id, kept);
    EXPECT_TRUE(seen.insert(id).second);
    ids.release(id);
  }
  SocketId again = ids.take();
  EXPECT_TRUE(seen.contains(again)) << "all others were used up, so the round begins anew";
  EXPECT_NE(again, kept);
}

}  // namespace
}  // namespace braid::uplink_test
