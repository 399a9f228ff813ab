// The doctor's checks of the host's routes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
