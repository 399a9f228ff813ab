// `forwarding`, `nat` and `forwards`.

#include "inet/ip.h"
#include "tests/unit/gateway/config/config_fixture.h"

namespace braid::config_router_test {
namespace {

using testing::ElementsAre;

void expectError(const std::string& lines, const std::string& error) {
  EXPECT_THAT(errorsOf(edgeText() + lines), ElementsAre(error));
}
void expectForwardError(const std::string& keys, const std::string& error) {
  expectError("forwards: [{" + keys + "}]\n", error);
}

TEST(ConfigRouter, NothingIsDoneForOthersByDefault) {
  RouterConfig router = configOf(edgeText()).router;
  EXPECT_FALSE(router.forwarding);
  EXPECT_FALSE(router.natV4);
  EXPECT_FALSE(router.natV6);
  EXPECT_TRUE(router.forwards.empty());
}

TEST(ConfigRouter, EveryKeyIsRead) {
  RouterConfig router = configOf(edgeText() + R"(
forwarding: on
nat: on
forwards:
  - {port: 8080, to: 10.1.0.9:80}
  - {protocol: udp, port: 5000-5010, to: 10.1.0.9, from: [198.51.100.0/24, 203.0.113.7], source: own}
)")
                            .router;
  EXPECT_TRUE(router.forwarding);
  EXPECT_TRUE(router.natV4);
  EXPECT_TRUE(router.natV6);
  Address host = *Address::parse("10.1.0.9");
  EXPECT_THAT(
      router.forwards,
      ElementsAre(PortForward{ip::kTcp, 8080, 8080, host, 80, {}, false},
                  PortForward{ip::kUdp,
                              5000,
                              5010,
                              host,
                              0,
                              {*Prefix::parse("198.51.100.0/24"), *Prefix::parse("203.0.113.7")},
                              true}));
}

TEST(ConfigRouter, PeersReachEachOtherOnlyIfItSaysSo) {
  EXPECT_FALSE(configOf(edgeText()).tunnel.betweenPeers);
  EXPECT_TRUE(configOf(edgeText() + "between-peers: on\n").tunnel.betweenPeers);
  expectError("between-peers: yes\n",
              "e.yaml:12:16: between-peers: 'yes' is not known; use one of: on, off");
}

TEST(ConfigRouter, NatMayLeaveIpv6Alone) {
  RouterConfig router = configOf(edgeText() + "nat: ipv4\n").router;
  EXPECT_TRUE(router.natV4);
  EXPECT_FALSE(router.natV6);
}

TEST(ConfigRouter, MistakesNameTheirPlaceAndARemedy) {
  expectError("nat: yes\n", "e.yaml:12:6: nat: 'yes' is not known; use one of: on, ipv4, off");
  expectForwardError(
      "to: 10.1.0.9",
      "e.yaml:12:12: forwards[0].port: is missing; name the port of this gateway, such as 8080 or "
      "5000-5010");
  expectForwardError(
      "port: 80",
      "e.yaml:12:12: forwards[0].to: is missing; name the host behind a peer, such as 192.168.1.10 "
      "or 192.168.1.10:80");
  expectForwardError(
      "port: 80, to: web.example",
      "e.yaml:12:27: forwards[0].to: 'web.example' is no address, nor one with a port; write "
      "ADDRESS, ADDRESS:PORT or [ADDRESS]:PORT, such as 192.168.1.10:80");
  expectForwardError(
      "port: 80-90, to: '10.1.0.9:80'",
      "e.yaml:12:30: forwards[0].to: has a port, and several lead to it; leave the port out: each "
      "stays as it is");
  expectForwardError(
      "port: 80, to: 10.1.0.9, from: ['fd00::/8']",
      "e.yaml:12:44: forwards[0].from[0]: is of another address family than 'to'; name networks of "
      "the same family");
  expectForwardError(
      "protocol: sctp, port: 80, to: 10.1.0.9",
      "e.yaml:12:23: forwards[0].protocol: 'sctp' is not known; use one of: tcp, udp");
}

TEST(ConfigRouter, AForwardLeadsBehindAPeer) {
  expectForwardError("port: 80, to: 10.77.0.1",
                     "e.yaml:12:27: forwards[0].to: 10.77.0.1 is in no peer's prefixes; name a "
                     "host behind a peer, "
                     "or add its network to that peer's prefixes");
}

TEST(ConfigRouter, APortLeadsToOneHost) {
  expectError("forwards: [{port: 80-90, to: 10.1.0.9}, {port: 85, to: 10.1.0.8}]\n",
              "e.yaml:12:48: forwards[1].port: is taken by forwards[0] already; choose another "
              "port, or put the one "
              "with 'from' first");
  // Other sources, another protocol.
  configOf(edgeText() +
           "forwards: [{port: 80, to: 10.1.0.9, from: [198.51.100.0/24]}, {port: 80, to: 10.1.0.8},"
           " {protocol: udp, port: 80, to: 10.1.0.8}]\n");
}

TEST(ConfigRouter, TheGatewaysOwnPortStaysItsOwn) {
  expectError(
      "listen: ['0.0.0.0:4433']\nforwards: [{protocol: udp, port: 4000-5000, to: 10.1.0.9}]\n",
      "e.yaml:13:34: forwards[0].port: takes the port that this gateway listens on; choose another "
      "port, or "
      "another 'listen'");
}

}  // namespace
}  // namespace braid::config_router_test
