#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "tunnel/peer/uplinks.h"

namespace braid::routes_test {
namespace {

/// An uplink with a socket for each address family.
UplinkSpec uplink(const std::string& name, SocketId first) {
  return {
      name,
      {{first, Address::Family::kV4}, {static_cast<SocketId>(first + 1), Address::Family::kV6}}};
}

struct RoutesTest : testing::Test {
  UplinkMeters uplinks{1500};
  PeerOptions peer;

  void use(std::vector<UplinkSpec> specs) { uplinks.set(std::move(specs)); }
  std::vector<NamedRoute> routes() const { return routesTo(peer, uplinks.all()); }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const NamedRoute& r : routes()) all.push_back(r.name);
    return all;
  }
  /// The uplink numbers, in the order of the routes.
  std::vector<unsigned> numbers() const {
    std::vector<unsigned> all;
    for (const NamedRoute& r : routes()) {
      EXPECT_EQ(r.own.uplink, r.peers.uplink);
      all.push_back(r.own.uplink);
    }
    return all;
  }
};

const Endpoint kAnywhere = *Endpoint::parse("192.0.2.1:4433");
const Endpoint kSix = *Endpoint::parse("[2001:db8::1]:4433");
const Endpoint kInside = *Endpoint::parse("10.0.0.1:4433");

TEST_F(RoutesTest, AnEndpointOfOneUplinkIsTriedOverThatUplinkOnly) {
  use({uplink("dsl", 1), uplink("lte", 3)});
  peer.endpoints = {kAnywhere};
  peer.endpointsOver["lte"] = {kInside};
  EXPECT_EQ(names(), (std::vector<std::string>{"dsl#0>192.0.2.1:4433", "lte#0>192.0.2.1:4433",
                                               "lte#0>10.0.0.1:4433"}));
  std::vector<NamedRoute> all = routes();
  EXPECT_EQ(all[2].uplink, "lte");
  EXPECT_EQ(all[2].route, (Route{3, {}, kInside}));
  peer.endpoints.clear();
  EXPECT_EQ(names(), (std::vector<std::string>{"lte#0>10.0.0.1:4433"}));
}

TEST_F(RoutesTest, AnEndpointThatTheUplinkFoundAgainIsTriedOnce) {
  use({uplink("dsl", 1), uplink("lte", 3)});
  peer.endpoints = {kAnywhere, kSix};
  peer.endpointsOver["dsl"] = {kSix, kAnywhere, kInside};
  std::vector<std::string> all = names();
  EXPECT_EQ(all.size(), 5u);
  EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size());
}

TEST_F(RoutesTest, NamesOfOneFamilyDoNotDependOnTheOther) {
  peer.endpoints = {kAnywhere, kSix};
  use({uplink("dsl", 1)});
  const std::vector<std::string> both = names();
  EXPECT_EQ(both, (std::vector<std::string>{"dsl#0>192.0.2.1:4433", "dsl#0>[2001:db8::1]:4433"}));
  UplinkSpec six = uplink("dsl", 1);
  six.sockets.erase(six.sockets.begin());
  use({six});
  EXPECT_EQ(names(), (std::vector<std::string>{both[1]})) << "the IPv4 address is gone";
}

TEST_F(RoutesTest, NumbersTellWhichRoutesShareAnUplinkAndStayWhileOneIsDown) {
  peer.endpoints = {kAnywhere, kSix};
  std::vector<UplinkSpec> specs{uplink("dsl", 1), uplink("lte", 3), uplink("wifi", 5)};
  use(specs);
  EXPECT_EQ(numbers(), (std::vector<unsigned>{1, 1, 2, 2, 3, 3}));
  specs[0].up = specs[1].up = false;
  use(specs);
  EXPECT_EQ(numbers(), (std::vector<unsigned>{3, 3}));
}

TEST_F(RoutesTest, ThereAreNoNumbersWithoutNeed) {
  peer.endpoints = {kAnywhere, kSix};
  use({uplink("dsl", 1)});
  EXPECT_EQ(numbers(), (std::vector<unsigned>{0, 0})) << "one uplink";
  peer.endpoints = {kAnywhere};
  use({uplink("dsl", 1), uplink("lte", 3)});
  EXPECT_EQ(numbers(), (std::vector<unsigned>{0, 0})) << "one route over each";
  peer.endpointsOver["lte"] = {kInside};
  EXPECT_EQ(numbers(), (std::vector<unsigned>{1, 2, 2})) << "two over one of them";
}

}  // namespace
}  // namespace braid::routes_test
