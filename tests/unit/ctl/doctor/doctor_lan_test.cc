// The doctor's checks of the LANs behind a gateway.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ctl/doctor/doctor.h"

namespace braid::doctor_lan_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kLan = 3, kUplink = 4, kBridge = 5;

struct DoctorLanTest : testing::Test {
  DoctorLanTest() {
    at(kLan, "lan0", "192.168.7.1", 24);
    at(kUplink, "wan0", "192.0.2.9", 24);
    uplink("wan0");
    config.device.networks = {*Prefix::parse("192.168.7.0/24")};
  }

  Link& at(int index, const std::string& name, const char* address, uint8_t length) {
    Link& link = table.link(index);
    link.index = index;
    link.name = name;
    link.up = link.on = true;
    link.addresses.insert({*Address::parse(address), length});
    return link;
  }
  void uplink(const char* name) {
    UplinkConfig& added = config.uplinks.emplace_back();
    added.name = added.interface = name;
  }
  std::vector<std::string> found() const {
    DoctorReport report;
    checkLans({config, nullptr, Machine(), table, routes}, report);
    std::vector<std::string> out;
    for (const Finding& f : report.findings()) out.push_back(f.what + "; " + f.remedy);
    return out;
  }

  Config config;
  NetworkTable table;
  std::vector<FoundRoute> routes;
};

TEST_F(DoctorLanTest, AnInterfaceThatIsOffOrWithoutCarrierIsFound) {
  EXPECT_THAT(found(), IsEmpty());
  table.link(kLan).up = false;
  EXPECT_THAT(found(),
              ElementsAre(HasSubstr("lan0, which leads to 192.168.7.0/24 "
                                    "(device.networks), has no carrier; see to the cable")));
  table.link(kLan).on = false;
  EXPECT_THAT(found(),
              ElementsAre(AllOf(HasSubstr("is switched off"), HasSubstr("ip link set lan0 up"))));
}

TEST_F(DoctorLanTest, ANetworkThatIsNowhereIsFound) {
  config.device.networks.push_back(*Prefix::parse("192.168.8.0/24"));
  EXPECT_THAT(found(), ElementsAre(AllOf(HasSubstr("192.168.8.0/24 (device.networks) is at no "),
                                         HasSubstr("ip address add ADDRESS/24 dev INTERFACE"))));
  FoundRoute& route = routes.emplace_back();
  route.spec.destination = config.device.networks[1];
  route.device = kLan;
  route.unicast = true;
  EXPECT_THAT(found(), IsEmpty()) << "a router of the LAN leads there";
}

TEST_F(DoctorLanTest, IdleInterfacesOfContainersDoNotLeadToALargeNetworkAlone) {
  config.device.networks = {*Prefix::parse("172.16.0.0/12")};
  at(kBridge, "docker0", "172.17.0.1", 16).up = false;
  EXPECT_THAT(found(), IsEmpty()) << "it has a small part of the network";
  at(kLan, "lan0", "172.16.1.1", 12);
  EXPECT_THAT(found(), IsEmpty());
  table.link(kLan).up = false;
  EXPECT_THAT(found(), ElementsAre(HasSubstr("lan0, which leads to 172.16.0.0/12")));
}

TEST_F(DoctorLanTest, ANetworkBehindTheLansOwnRouterIsSomewhere) {
  config.device.networks.push_back(*Prefix::parse("192.168.8.0/24"));
  table.addDefaultRoute({Address::Family::kV4, kUplink, *Address::parse("192.0.2.1"), 100});
  EXPECT_EQ(found().size(), 1u) << "the provider's router does not lead there";
  table.addDefaultRoute({Address::Family::kV4, kLan, *Address::parse("192.168.7.254"), 200});
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(DoctorLanTest, AnAddressOfTheLoopbackInterfaceAndABridgedNetworkAreNowhereElse) {
  config.device.networks.push_back(*Prefix::parse("192.168.8.1/32"));
  EXPECT_EQ(found().size(), 1u);
  at(1, "lo", "192.168.8.1", 32);
  EXPECT_THAT(found(), IsEmpty());
  config.device.networks.push_back(*Prefix::parse("192.168.9.0/24"));
  EXPECT_EQ(found().size(), 1u);
  config.tunnel.mode = TunnelOptions::Mode::kTap;
  EXPECT_THAT(found(), IsEmpty()) << "the bridge needs no address";
}

TEST_F(DoctorLanTest, AnAddressAtAPortOfABridgeIsFound) {
  at(kBridge, "br-lan", "192.168.9.1", 24).kind = "bridge";
  table.link(kLan).master = kBridge;
  EXPECT_THAT(found(), ElementsAre(AllOf(
                           HasSubstr("lan0 has the address 192.168.7.1/24 and is a port of the "
                                     "bridge br-lan"),
                           HasSubstr("ip address del 192.168.7.1/24 dev lan0 && ip address add "
                                     "192.168.7.1/24 dev br-lan"))));
  table.link(kBridge).kind = "vrf";
  EXPECT_THAT(found(), IsEmpty()) << "a port of a VRF keeps its addresses";
  table.link(kBridge).kind = "bridge";
  table.link(kLan).master = 0;
  table.link(kUplink).master = kBridge;
  EXPECT_THAT(found(), ElementsAre(AllOf(HasSubstr("wan0 has the address 192.0.2.9/24"),
                                         HasSubstr("name br-lan as the uplink's interface"))));
}

TEST_F(DoctorLanTest, AnIpv6PrefixThatNobodyWasToldOfIsFound) {
  at(kLan, "lan0", "2001:db8:7::1", 64);
  at(kLan, "lan0", "fd07::1", 64);
  table.link(kLan).addresses.insert({*Address::parse("fe80::1"), 64, 253});  // of the link alone
  config.device.routes = {*Prefix::parse("10.0.0.0/8"), *Prefix::parse("fd00::/8")};
  EXPECT_THAT(found(), IsEmpty()) << "only private networks are behind the tunnel";
  config.device.routes.push_back(*Prefix::parse("::/0"));
  EXPECT_THAT(found(),
              ElementsAre(AllOf(HasSubstr("hosts at lan0 have addresses of "
                                          "2001:db8:7::/64, which is not among"),
                                HasSubstr("put \"2001:db8:7::/64\" into device.networks"))));
  config.device.networks.push_back(*Prefix::parse("2001:db8:7::/64"));
  EXPECT_THAT(found(), IsEmpty());
  config.device.networks.pop_back();
  uplink("lan0");
  EXPECT_THAT(found(), IsEmpty()) << "hosts there have a router of their own";
  config.uplinks.pop_back();
  EXPECT_EQ(found().size(), 1u);
  config.device.networks.clear();
  EXPECT_THAT(found(), IsEmpty()) << "no LAN is known";
}

}  // namespace
}  // namespace braid::doctor_lan_test
