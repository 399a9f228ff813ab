// The doctor's checks of a host. A folder replaces the host's /proc.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "ctl/doctor/doctor.h"
#include "tests/temporary_folder.h"

namespace braid::doctor_host_test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct DoctorHostTest : testing::Test {
  DoctorHostTest() {
    config.peers.emplace_back().options.prefixes = {*Prefix::parse("10.1.0.0/16")};
    forwards("ipv4/ip_forward", 0);
    forwards("ipv6/conf/all/forwarding", 0);
  }

  void forwards(const std::string& family, int on) const {
    root.write("proc/sys/net/" + family, std::to_string(on) + "\n");
  }
  // The findings about forwarding.
  std::vector<std::string> found() const {
    DoctorReport report;
    checkHost({config, nullptr, Machine(root.path()), {}, {}}, report);
    std::vector<std::string> out;
    for (const Finding& f : report.findings())
      if (f.check == "forwarding") out.push_back(f.what + "; " + f.why);
    return out;
  }

  TemporaryFolder root;
  Config config;
};

TEST_F(DoctorHostTest, WhatTranslatesAddressesMustForward) {
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

TEST_F(DoctorHostTest, AForwardedPortNeedsItsOwnFamilyAlone) {
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

TEST_F(DoctorHostTest, SoDoNetworksOnThisSide) {
  config.device.networks = {*Prefix::parse("192.168.7.0/24")};
  EXPECT_THAT(found(),
              ElementsAre(HasSubstr("192.168.7.0/24 is behind this gateway (device.networks)")));
}

}  // namespace
}  // namespace braid::doctor_host_test
