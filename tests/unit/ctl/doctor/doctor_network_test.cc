// The doctor's checks of the host's routes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "ctl/doctor/doctor.h"
#include "tests/temporary_folder.h"

namespace braid::doctor_network_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kUplink = 2, kDevice = 7;

struct DoctorNetworkTest : testing::Test {
  DoctorNetworkTest() {
    link("wwan0", kUplink);
    link(config.device.name, kDevice);
    config.device.routes = {*Prefix::parse("0.0.0.0/0")};
  }

  void link(const std::string& name, int index) {
    Link link;
    link.name = name;
    link.index = index;
    table.setLink(link);
  }
  FoundRoute& route(const char* destination, int device, uint32_t metric) {
    FoundRoute& found = routes.emplace_back();
    found.spec.destination = *Prefix::parse(destination);
    found.spec.metric = metric;
    found.device = device;
    found.unicast = true;
    return found;
  }
  void uplink(const char* name) {
    UplinkConfig& added = config.uplinks.emplace_back();
    added.name = added.interface = name;
  }
  // The findings about routes, or of another check.
  std::vector<std::string> found(const std::string& check = "routes",
                                 const RunningDaemon* daemon = nullptr) const {
    DoctorReport report;
    checkNetwork({config, daemon, Machine(), table, routes}, report);
    std::vector<std::string> out;
    for (const Finding& f : report.findings())
      if (f.check == check) out.push_back(f.what + "; " + f.why + "; " + f.remedy);
    return out;
  }

  Config config;
  NetworkTable table;
  std::vector<FoundRoute> routes;
};

TEST_F(DoctorNetworkTest, AFamilyInClearIsFound) {
  EXPECT_THAT(found(), IsEmpty()) << "the host has no IPv6";
  route("::/0", kUplink, 1024);
  EXPECT_THAT(found(),
              ElementsAre(AllOf(HasSubstr("nothing of IPv6, which has a default route by wwan0"),
                                HasSubstr("leaves in clear"), HasSubstr("add \"::/0\""))));
  route("::/0", 0, 1).unicast = false;
  EXPECT_THAT(found(), IsEmpty()) << "it is refused";
  routes.pop_back();
  config.device.routes.push_back(*Prefix::parse("::/0"));
  EXPECT_THAT(found(), IsEmpty()) << "the tunnel takes it";
}

TEST_F(DoctorNetworkTest, SoIsIpv4) {
  config.device.routes = {*Prefix::parse("2000::/3")};
  route("0.0.0.0/0", kDevice, 0);
  EXPECT_THAT(found(), IsEmpty()) << "by the device itself";
  route("0.0.0.0/0", kUplink, 100);
  routes.erase(routes.begin());
  EXPECT_THAT(found(),
              ElementsAre(AllOf(HasSubstr("nothing of IPv4, which has a default route by wwan0"),
                                HasSubstr("add \"0.0.0.0/0\""))));
}

TEST_F(DoctorNetworkTest, NoRouteOfTheHostIsInTheWay) {
  config.device.routes = {*Prefix::parse("0.0.0.0/0"), *Prefix::parse("::/0")};
  route("0.0.0.0/0", kUplink, 0);
  route("::/0", kUplink, 1);
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(DoctorNetworkTest, AFamilyThatIsRefusedIsNotInClear) {
  config.device.whenDown = DeviceConfig::WhenDown::kBlock;
  route("::/0", kUplink, 1024);
  EXPECT_THAT(found(), IsEmpty());
}

// A provider's name server is on the uplink's side. With a route for everything it is asked through
// the tunnel.
TEST_F(DoctorNetworkTest, NameServersThatTheTunnelTakesAwayAreFound) {
  TemporaryFolder root;
  root.write("etc/resolv.conf", "nameserver 10.64.0.1\nnameserver 10.2.0.53\n");
  auto findings = [&] {
    DoctorReport report;
    checkResolvers({config, nullptr, Machine(root.path()), table, routes}, report);
    std::vector<std::string> out;
    for (const Finding& f : report.findings()) out.push_back(f.what + "; " + f.remedy);
    return out;
  };
  PeerConfig& peer = config.peers.emplace_back();
  peer.options.prefixes = {*Prefix::parse("0.0.0.0/0"), *Prefix::parse("10.2.0.0/16")};
  EXPECT_THAT(findings(), ElementsAre(AllOf(HasSubstr("10.64.0.1 (/etc/resolv.conf)"),
                                            HasSubstr("dns: {servers:"))));
  config.dns.servers = {*Address::parse("10.64.0.77")};
  root.write("etc/resolv.conf", "nameserver 10.64.0.1\nnameserver 10.64.0.77\n");
  EXPECT_THAT(findings(), ElementsAre(HasSubstr("10.64.0.1 "))) << "it is asked first";
  root.write("etc/resolv.conf", "nameserver 10.64.0.77\nnameserver 10.64.0.1\n");
  EXPECT_THAT(findings(), IsEmpty()) << "one of 'dns' is asked first";
  config.dns.servers.clear();
  root.write("etc/resolv.conf", "nameserver 10.64.0.1\n");
  Link near = table.links().at(kUplink);
  near.addresses.insert({*Address::parse("10.64.0.9"), 24, 0, true, false, false});
  table.setLink(near);
  EXPECT_THAT(findings(), IsEmpty()) << "it is in a LAN";
  config.uplinks.emplace_back().interface = "wwan0";
  EXPECT_THAT(findings(), ElementsAre(HasSubstr("10.64.0.1"))) << "it is in an uplink's network";
  config.device.routes.clear();
  link("wwan0", kUplink);
  EXPECT_THAT(findings(), IsEmpty()) << "no route takes it";
}

TEST_F(DoctorNetworkTest, AnAddressThatTheDaemonWaitsForIsFound) {
  config.listen = {*Endpoint::parse("192.0.2.1:4433"), *Endpoint::parse("127.0.0.1:4433")};
  const RunningDaemon running{};
  for (const RunningDaemon* daemon : {&running, static_cast<const RunningDaemon*>(nullptr)})
    EXPECT_THAT(found("listen", daemon),
                ElementsAre(AllOf(HasSubstr("192.0.2.1:4433: no interface has this address"),
                                  HasSubstr("the daemon waits for the address"))));
}

TEST_F(DoctorNetworkTest, AnInterfaceThatIsTooSmallForAHandshakeIsFound) {
  uplink("wwan0");
  Link small = table.links().at(kUplink);
  small.mtu = 1228;
  table.setLink(small);
  EXPECT_THAT(found("mtu"), IsEmpty());
  small.mtu = 1227;
  table.setLink(small);
  EXPECT_THAT(found("mtu"), ElementsAre(AllOf(HasSubstr("wwan0 has an MTU of 1227"),
                                              HasSubstr("ip link set wwan0 mtu 1500"))));
}

TEST_F(DoctorNetworkTest, TwoUplinksThatAreOneInterfaceAreFound) {
  Link twin = table.links().at(kUplink);
  twin.mtu = 1500;
  twin.mac = twin.ownMac = "02:00:5e:00:53:01";
  table.setLink(twin);
  UplinkConfig& lte = config.uplinks.emplace_back();
  lte.name = lte.interface = "wwan0";
  UplinkConfig& modem = config.uplinks.emplace_back();
  modem.name = "modem";
  modem.mac = "02:00:5e:00:53:02";
  auto twins = [&] {
    std::vector<std::string> out = found("uplink");
    std::erase_if(
        out, [](const std::string& f) { return f.find("one interface") == std::string::npos; });
    return out;
  };
  EXPECT_THAT(twins(), IsEmpty());
  modem.mac = "02:00:5e:00:53:01";
  EXPECT_THAT(twins(), ElementsAre(HasSubstr("wwan0 and modem are one interface, wwan0")));
}

TEST_F(DoctorNetworkTest, AnAddressThatAnotherHostHasIsNamed) {
  uplink("wwan0");
  Link link = table.links().at(kUplink);
  link.up = true;
  link.mtu = 1500;
  link.addresses.insert({*Address::parse("2001:db8::9"), 64, 0, false});
  table.setLink(link);
  EXPECT_THAT(found("uplink"),
              ElementsAre(HasSubstr("wwan0 has no usable address: 2001:db8::9 is not for use, as "
                                    "another host has it too")));
}

TEST_F(DoctorNetworkTest, WhatHelpsAnUplinkIsSaidByWhatItLacks) {
  UplinkConfig& uplink = config.uplinks.emplace_back();
  uplink.name = "modem";
  uplink.mac = "02:00:5e:00:53:01";
  EXPECT_THAT(found("uplink"), ElementsAre(AllOf(HasSubstr("there is no interface with MAC"),
                                                 HasSubstr("correct uplinks.mac"))));
  for (int index : {kUplink, kDevice}) {
    Link link = table.links().at(index);
    link.mtu = 1500;
    link.mac = uplink.mac;
    table.setLink(link);
  }
  EXPECT_THAT(found("uplink"), ElementsAre(AllOf(HasSubstr("more than one interface with MAC"),
                                                 HasSubstr("name it by uplinks.path"))));
  uplink.mac.clear();
  uplink.interface = "wwan0";
  EXPECT_THAT(found("uplink"), ElementsAre(HasSubstr("ip link set wwan0 up")));
  Link dark = table.links().at(kUplink);
  dark.on = true;
  table.setLink(dark);
  EXPECT_THAT(found("uplink"), ElementsAre(HasSubstr("it has no carrier")));
}

TEST_F(DoctorNetworkTest, AnUplinkNeedsADefaultRouteOfTheFamilyByWhichPeersAreCalled) {
  uplink("wwan0");
  Link link = table.links().at(kUplink);
  link.up = link.on = true;
  link.mtu = 1500;
  link.addresses.insert({*Address::parse("192.0.2.9"), 24});
  table.setLink(link);
  std::vector<Endpoint>& endpoints = config.peers.emplace_back().options.endpoints;
  endpoints = {*Endpoint::parse("[2001:db8::1]:4433")};
  EXPECT_THAT(found("uplink"), IsEmpty());
  endpoints.push_back(*Endpoint::parse("198.51.100.1:4433"));
  EXPECT_THAT(found("uplink"), ElementsAre(HasSubstr("wwan0 has no IPv4 default route")));
  endpoints.back() = *Endpoint::parse("192.0.2.1:4433");
  EXPECT_THAT(found("uplink"), IsEmpty()) << "the peer is on its network";
  endpoints.clear();
  config.peers[0].hosts = {{"hub.example.org", 4433}};
  EXPECT_THAT(found("uplink"), ElementsAre(HasSubstr("wwan0 has no IPv4 default route")));
}

TEST_F(DoctorNetworkTest, CopiesNeedASecondUplink) {
  uplink("wwan0");
  EXPECT_THAT(found("recovery"), IsEmpty());
  config.tunnel.recoveryClasses.emplace_back().policy = "redundant";
  EXPECT_THAT(found("recovery"), ElementsAre(HasSubstr("wwan0 is the only uplink")));
  uplink("wlan0");
  EXPECT_THAT(found("recovery"), IsEmpty());
  config.uplinks.clear();
  EXPECT_THAT(found("recovery"), IsEmpty()) << "the peers have the uplinks";
}

TEST_F(DoctorNetworkTest, ARouterThatDoesNotAnswerIsNamed) {
  uplink("wwan0");
  Link link = table.links().at(kUplink);
  link.up = true;
  link.addresses.insert({*Address::parse("192.0.2.9"), 24});
  table.setLink(link);
  const Address router = *Address::parse("192.0.2.1"), other = *Address::parse("192.0.2.2");
  table.addDefaultRoute({Address::Family::kV4, kUplink, router, 100});
  table.addDefaultRoute({Address::Family::kV4, kUplink, router, 200});
  auto judged = [&](const std::vector<MuteNeighbour>& mute) {
    DoctorReport report;
    judgeRouters({config, nullptr, Machine(), table, routes}, mute, report);
    std::vector<std::string> out;
    for (const Finding& f : report.findings()) out.push_back(f.what + "; " + f.remedy);
    return out;
  };
  EXPECT_THAT(judged({{router, kDevice}, {other, kUplink}}), IsEmpty());
  EXPECT_THAT(judged({{router, kUplink}}),
              ElementsAre(AllOf(HasSubstr("the router 192.0.2.1 does not answer at wwan0 (ARP)"),
                                HasSubstr("ip route show dev wwan0"))));
  config.uplinks[0].gateway = UplinkConfig::Gateway::kAddress;
  config.uplinks[0].gateways = {other};
  EXPECT_THAT(judged({{other, kUplink}}), ElementsAre(HasSubstr("the router 192.0.2.2")));
}

TEST_F(DoctorNetworkTest, NameServersThatNobodyHandsOverAreFound) {
  config.dns.servers = {*Address::parse("10.2.0.53")};
  TemporaryFolder root;
  auto findings = [&](const RunningDaemon* daemon) {
    DoctorReport report;
    checkResolvers({config, daemon, Machine(root.path()), table, routes, "/etc/braid/no-such.yaml"},
                   report);
    std::vector<std::string> out;
    for (const Finding& f : report.findings()) out.push_back(f.what + "; " + f.remedy);
    return out;
  };
  const std::string path = std::getenv("PATH");
  ::setenv("PATH", root.path().c_str(), 1);
  EXPECT_THAT(findings(nullptr),
              ElementsAre(HasSubstr("10.2.0.53 (dns.servers) are not handed to this host: it has "
                                    "neither systemd-resolved nor resolvconf")));
  ::setenv("PATH", path.c_str(), 1);
  root.write("run/systemd/resolve/stub-resolv.conf", "nameserver 127.0.0.53\n");
  EXPECT_THAT(findings(nullptr), IsEmpty()) << "the unit does it at the start";
  const RunningDaemon running{};
  EXPECT_THAT(findings(&running), ElementsAre(HasSubstr("braidctl dns set /etc/braid/no-such")));
}

TEST_F(DoctorNetworkTest, ItTellsTheMarksInForce) {
  config.device.markMask = 0xff00;
  config.device.rulePriority = 5000;
  DoctorReport report;
  checkNetwork({config, nullptr, Machine(), table, routes}, report);
  EXPECT_THAT(report.toText(),
              HasSubstr("marks: in the bits 0xff00 of the packet mark Braid's packets have 0x5f00, "
                        "what bypasses the tunnel 0x4000/0xe000, streams 0x8000/0xc000; its rules "
                        "have priorities from 5100 to 5700"));
}

}  // namespace
}  // namespace braid::doctor_network_test
