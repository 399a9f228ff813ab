// The doctor's checks of the kernel's settings. A folder replaces the host's /proc.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "ctl/doctor/doctor.h"
#include "tests/temporary_folder.h"

namespace braid::doctor_sysctls_test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct DoctorSysctlsTest : testing::Test {
  DoctorSysctlsTest() {
    config.peers.emplace_back().options.prefixes = {*Prefix::parse("10.1.0.0/16")};
    forwards("ipv4/ip_forward", 0);
    forwards("ipv6/conf/all/forwarding", 0);
  }

  void forwards(const std::string& family, int on) const { set(family, on); }
  void set(const std::string& setting, int64_t value) const {
    root.write("proc/sys/net/" + setting, std::to_string(value) + "\n");
  }
  Link& link(const std::string& name, int index) {
    Link& link = table.link(index);
    link.index = index;
    link.name = name;
    link.up = true;
    return link;
  }
  void uplink(const char* name) {
    UplinkConfig& added = config.uplinks.emplace_back();
    added.name = added.interface = name;
  }
  // The findings of a check.
  std::vector<Finding> findings(const std::string& check) const {
    DoctorReport report;
    checkSysctls({config, nullptr, Machine(root.path()), table, {}}, report);
    std::vector<Finding> out;
    for (const Finding& f : report.findings())
      if (f.check == check) out.push_back(f);
    return out;
  }
  std::vector<std::string> found(const std::string& check = "forwarding") const {
    std::vector<std::string> out;
    for (const Finding& f : findings(check)) out.push_back(f.what + "; " + f.why);
    return out;
  }
  std::vector<std::string> remedies(const std::string& check) const {
    std::vector<std::string> out;
    for (const Finding& f : findings(check)) out.push_back(f.remedy);
    return out;
  }

  TemporaryFolder root;
  Config config;
  NetworkTable table;
};

TEST_F(DoctorSysctlsTest, WhatTranslatesAddressesMustForward) {
  EXPECT_THAT(found(), IsEmpty());
  config.router.natV4 = config.router.natV6 = true;
  EXPECT_THAT(found(),
              ElementsAre("net.ipv4.ip_forward is off, and addresses of peers' networks are to be "
                          "translated (nat); by IPv4, hosts behind peers reach this gateway, and "
                          "nothing beyond it"))
      << "no peer has IPv6";
  config.peers[0].options.prefixes.push_back(*Prefix::parse("fd01::/64"));
  EXPECT_THAT(found(), ElementsAre(HasSubstr("ip_forward"),
                                   AllOf(HasSubstr("net.ipv6.conf.all.forwarding is off"),
                                         HasSubstr("by IPv6, hosts behind peers"))));
  config.router.natV6 = false;
  forwards("ipv4/ip_forward", 1);
  EXPECT_THAT(found(), IsEmpty());
}

TEST_F(DoctorSysctlsTest, AForwardedPortNeedsItsOwnFamilyAlone) {
  PortForward& forward = config.router.forwards.emplace_back();
  forward.firstPort = forward.lastPort = 8080;
  forward.to = *Address::parse("10.1.0.9");
  EXPECT_THAT(found(),
              ElementsAre(HasSubstr(
                  "net.ipv4.ip_forward is off, and port 8080 leads to 10.1.0.9 (forwards)")));
  forward.to = *Address::parse("fd01::9");
  EXPECT_THAT(found(), ElementsAre(HasSubstr(
                           "net.ipv6.conf.all.forwarding is off, and port 8080 leads to fd01::9")));
  config.router.forwarding = true;
  EXPECT_THAT(found(), IsEmpty()) << "the daemon switches it on";
}

TEST_F(DoctorSysctlsTest, SoDoNetworksOnThisSide) {
  config.device.networks = {*Prefix::parse("192.168.7.0/24")};
  EXPECT_THAT(found(),
              ElementsAre(HasSubstr("192.168.7.0/24 is behind this gateway (device.networks)")));
}

TEST_F(DoctorSysctlsTest, IPv4IsForwardedByTheSettingOfEachInterface) {
  config.device.networks = {*Prefix::parse("192.168.7.0/24")};
  link("lan0.7", 4).addresses.insert({*Address::parse("192.168.7.1"), 24});
  link("wan0", 5).addresses.insert({*Address::parse("192.0.2.9"), 24});
  forwards("ipv4/ip_forward", 1);
  set("ipv4/conf/lan0.7/forwarding", 1);
  set("ipv4/conf/wan0/forwarding", 0);
  EXPECT_THAT(found(), IsEmpty()) << "wan0 is no interface of a LAN";
  set("ipv4/conf/lan0.7/forwarding", 0);
  EXPECT_THAT(found(), ElementsAre(HasSubstr("net.ipv4.conf.lan0/7.forwarding is off, while")));
  EXPECT_THAT(remedies("forwarding"),
              ElementsAre(HasSubstr("sysctl -w net.ipv4.conf.lan0/7.forwarding=1")));
  forwards("ipv4/ip_forward", 0);
  EXPECT_THAT(found(), ElementsAre(HasSubstr("net.ipv4.ip_forward is off"))) << "that is enough";
}

TEST_F(DoctorSysctlsTest, WhyAnUplinkHasNoIpv6IsSaidWhereAPeerIsCalledByIt) {
  uplink("lte0");
  Link& lte = link("lte0", 3);
  lte.addresses.insert({*Address::parse("192.0.2.9"), 24});
  set("ipv6/conf/lte0/disable_ipv6", 0);
  set("ipv6/conf/lte0/accept_ra", 1);
  set("ipv6/conf/lte0/forwarding", 1);
  EXPECT_THAT(found("ipv6"), IsEmpty()) << "no peer is called by IPv6";
  config.peers[0].options.endpoints = {*Endpoint::parse("[2001:db8::1]:4433")};
  EXPECT_THAT(found("ipv6"), ElementsAre(HasSubstr("lte0 forwards, and so hears no router")));
  config.peers[0].options.endpoints.push_back(*Endpoint::parse("192.0.2.1:4433"));
  EXPECT_THAT(found("ipv6"), IsEmpty()) << "the peer has an IPv4 address, too";
  config.peers[0].options.endpoints.pop_back();
  EXPECT_THAT(remedies("ipv6"), ElementsAre(HasSubstr("sysctl -w net.ipv6.conf.lte0.accept_ra=2")));
  set("ipv6/conf/lte0/accept_ra", 0);
  EXPECT_THAT(found("ipv6"), IsEmpty()) << "another program reads the advertisements";
  set("ipv6/conf/lte0/disable_ipv6", 1);
  EXPECT_THAT(found("ipv6"), ElementsAre(HasSubstr("net.ipv6.conf.lte0.disable_ipv6 is 1")));
  set("ipv6/conf/lte0/disable_ipv6", 0);
  lte.addresses.insert({*Address::parse("2001:db8:7::9"), 64});
  EXPECT_THAT(found("ipv6"), ElementsAre(HasSubstr("lte0: lte0 has no IPv6 default route")));
  table.addDefaultRoute({Address::Family::kV6, 3, *Address::parse("fe80::1"), 1024});
  EXPECT_THAT(found("ipv6"), IsEmpty()) << "it has IPv6";
}

TEST_F(DoctorSysctlsTest, AHostWithoutIpv6CannotHaveTheAddressOfTheTunnel) {
  config.device.addresses = {{*Address::parse("10.99.0.2"), 24}};
  set("ipv6/conf/all/disable_ipv6", 1);
  set("ipv6/conf/default/disable_ipv6", 1);
  EXPECT_THAT(found("ipv6"), IsEmpty());
  config.device.addresses.push_back({*Address::parse("fd01::2"), 64});
  EXPECT_THAT(found("ipv6"),
              ElementsAre(HasSubstr("net.ipv6.conf.all.disable_ipv6 is 1, and device.addresses has "
                                    "fd01::2/64")));
  set("ipv6/conf/all/disable_ipv6", 0);
  EXPECT_THAT(remedies("ipv6"),
              ElementsAre(HasSubstr("sysctl -w net.ipv6.conf.default.disable_ipv6=0")));
  link(config.device.name, 7);
  EXPECT_THAT(found("ipv6"), IsEmpty()) << "the device is there, and may have IPv6";
}

TEST_F(DoctorSysctlsTest, AFullTableOfConnectionsIsFound) {
  set("netfilter/nf_conntrack_max", 1000);
  set("netfilter/nf_conntrack_count", 949);
  EXPECT_THAT(found("conntrack"), IsEmpty());
  set("netfilter/nf_conntrack_count", 950);
  EXPECT_THAT(found("conntrack"), ElementsAre(HasSubstr("950 connections of at most 1000")));
  EXPECT_THAT(remedies("conntrack"),
              ElementsAre(HasSubstr("sysctl -w net.netfilter.nf_conntrack_max=4000")));
}

}  // namespace
}  // namespace braid::doctor_sysctls_test
