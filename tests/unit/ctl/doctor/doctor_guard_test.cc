// The doctor's checks of guards, and of the host's own ways beside the tunnel.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "ctl/doctor/doctor.h"
#include "tests/temporary_folder.h"

namespace braid::doctor_guard_test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using WhenDown = DeviceConfig::WhenDown;

struct DoctorGuardTest : testing::Test {
  DoctorGuardTest() {
    config.device.routes = {*Prefix::parse("0.0.0.0/0"), *Prefix::parse("::/0")};
    config.device.whenDown = WhenDown::kBlock;
  }

  std::vector<std::string> found(const GuardState& state,
                                 const RunningDaemon* daemon = nullptr) const {
    DoctorReport report;
    judgeGuard({config, daemon, Machine(root.path()), table, routes, "/etc/braid/edge.yaml"}, state,
               report);
    std::vector<std::string> out;
    for (const Finding& f : report.findings()) out.push_back(f.what + "; " + f.remedy);
    return out;
  }

  TemporaryFolder root;
  Config config;
  NetworkTable table;
  std::vector<FoundRoute> routes;
};

TEST_F(DoctorGuardTest, AGuardThatIsNotWholeIsFound) {
  EXPECT_THAT(found({.isWhole = true}), IsEmpty());
  EXPECT_THAT(found({}),
              ElementsAre(AllOf(HasSubstr("its guard is not there, or not whole"),
                                HasSubstr("braidctl guard apply /etc/braid/edge.yaml"))));
  const RunningDaemon running{};
  EXPECT_THAT(found({}, &running), ElementsAre(HasSubstr("nft monitor")));
  config.device.whenDown = WhenDown::kUnset;
  EXPECT_THAT(found({}), IsEmpty());
}

TEST_F(DoctorGuardTest, OneThatIsNotMadeAtBootIsFoundWhereSystemdRuns) {
  fs::create_directories(root.path() / "run/systemd/system");
  EXPECT_THAT(found({.isWhole = true}),
              ElementsAre(AllOf(HasSubstr("neither braid@edge nor braid-guard@edge is enabled"),
                                HasSubstr("systemctl enable braid@edge"))));
  const fs::path folder = root.path() / "etc/systemd/system/multi-user.target.wants";
  fs::create_directories(folder);
  fs::create_symlink("/lib/systemd/system/braid@.service", folder / "braid@edge.service");
  EXPECT_THAT(found({.isWhole = true}), IsEmpty());
}

TEST_F(DoctorGuardTest, AGuardThatAnotherGatewayLeftIsNamed) {
  GuardState state{.isWhole = true,
                   .standing = {{"/etc/braid/edge.yaml", "braid0", false},
                                {"/etc/braid/site.yaml", "braid7", true},
                                {"/etc/braid/copy.yaml", "braid0", false}}};
  EXPECT_THAT(found(state), IsEmpty()) << "its own, one that is kept, and one of its own device";
  state.standing.push_back({"/etc/braid/old.yaml", "braid9", false});
  EXPECT_THAT(found(state),
              ElementsAre(AllOf(HasSubstr("the guard of /etc/braid/old.yaml (braid9) refuses"),
                                HasSubstr("braidctl release /etc/braid/old.yaml"))));
  config.device.whenDown = WhenDown::kUnset;
  state.standing = {{"/etc/braid/edge.yaml", "braid0", false}};
  EXPECT_THAT(found(state), ElementsAre(HasSubstr("the guard of /etc/braid/edge.yaml")))
      << "its configuration wants none any more";
}

TEST_F(DoctorGuardTest, DirectNeedsTheHostsOwnWays) {
  config.device.whenDown = WhenDown::kDirect;
  EXPECT_THAT(found({}), ElementsAre(HasSubstr("no default route of IPv4"),
                                     HasSubstr("ip -6 route add default")));
  UplinkConfig& uplink = config.uplinks.emplace_back();
  uplink.name = uplink.interface = "wan0";
  Link& wan = table.link(4);
  wan.index = 4;
  wan.name = "wan0";
  wan.up = wan.on = true;
  wan.addresses.insert({*Address::parse("192.0.2.9"), 24});
  wan.addresses.insert({*Address::parse("fd07::9"), 64});
  EXPECT_THAT(found({}), ElementsAre(HasSubstr("no default route of IPv4")))
      << "the provider has no IPv6";
  wan.addresses.insert({*Address::parse("2001:db8:7::9"), 64});
  EXPECT_EQ(found({}).size(), 2u);
  for (const char* any : {"0.0.0.0/0", "::/0"}) {
    FoundRoute& route = routes.emplace_back();
    route.spec.destination = *Prefix::parse(any);
    route.unicast = true;
  }
  EXPECT_THAT(found({}), IsEmpty());
  routes[1].unicast = false;
  EXPECT_THAT(found({}), ElementsAre(HasSubstr("IPv6"))) << "it is unreachable";
  config.device.routes = {*Prefix::parse("10.0.0.0/8")};
  EXPECT_THAT(found({}), IsEmpty()) << "hosts need no way there but the tunnel";
}

}  // namespace
}  // namespace braid::doctor_guard_test
