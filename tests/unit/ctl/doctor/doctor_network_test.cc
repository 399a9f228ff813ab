// The doctor's checks of the host's routes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ctl/doctor/doctor.h"

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

TEST_F(DoctorNetworkTest, ARouteInTheWayHasTheMetricOfTheDevices) {
  config.device.routes = {*Prefix::parse("0.0.0.0/0"), *Prefix::parse("::/0")};
  route("0.0.0.0/0", kUplink, 100);
  route("::/0", kUplink, 1024);
  EXPECT_THAT(found(), IsEmpty());
  route("0.0.0.0/0", kUplink, 0);
  route("::/0", kUplink, 1);
  EXPECT_THAT(found(),
              ElementsAre(HasSubstr("has 0.0.0.0/0, and the host has a route for it already"),
                          HasSubstr("has ::/0, and the host has a route for it already")));
}

TEST_F(DoctorNetworkTest, AnAddressThatTheDaemonWaitsForIsFound) {
  config.listen = {*Endpoint::parse("192.0.2.1:4433"), *Endpoint::parse("127.0.0.1:4433")};
  const RunningDaemon running{};
  for (const RunningDaemon* daemon : {&running, static_cast<const RunningDaemon*>(nullptr)})
    EXPECT_THAT(found("listen", daemon),
                ElementsAre(AllOf(HasSubstr("192.0.2.1:4433: no interface has this address"),
                                  HasSubstr("the daemon waits for the address"))));
}

}  // namespace
}  // namespace braid::doctor_network_test
