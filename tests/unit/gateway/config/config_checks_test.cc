// Mistakes that concern several parts of a file.

#include "tests/unit/gateway/config/config_fixture.h"

namespace braid::config_checks_test {
namespace {

using testing::ElementsAre;

const char kUplinks[] = "uplinks:\n  - {name: wifi, interface: wlan0}\n";
const char kEndpoints[] = "    endpoints: [192.0.2.1:4433]\n";
const char kPrefixes[] = "    prefixes: [10.1.0.0/16, 10.99.0.0/30]\n";

void expectError(const std::string& text, const std::string& error) {
  EXPECT_THAT(errorsOf(text), ElementsAre(error));
}

TEST(ConfigChecks, SomebodyMustBeAbleToStart) {
  expectError(with(edgeText(), kUplinks, ""),
              "e.yaml:1:1: has neither uplinks nor listen; add 'uplinks' to reach peers, or "
              "'listen' to be reached");
  expectError(
      with(edgeText(), kUplinks, "listen: ['0.0.0.0:1']\n"),
      "e.yaml:7:5: peers[0]: has endpoints, and there are no uplinks to reach them from; add "
      "'uplinks', or remove "
      "the endpoints and let the peer come");
  EXPECT_THAT(errorsOf(with(edgeText(), kEndpoints, "")),
              ElementsAre("e.yaml:6:3: uplinks: no peer has endpoints to reach over uplinks; add "
                          "the endpoints of a peer, "
                          "or remove the uplinks",
                          "e.yaml:8:5: peers[0]: has no endpoints, and there is no 'listen' to be "
                          "reached at; add the "
                          "peer's endpoints, or 'listen' here"));
}

TEST(ConfigChecks, AWildcardTakesItsPortAtEveryAddressOfItsFamily) {
  auto listening = [](const std::string& list) { return edgeText() + "listen: [" + list + "]\n"; };
  expectError(listening("'0.0.0.0:4433', '192.0.2.1:4433'"),
              "e.yaml:12:26: listen[1]: 192.0.2.1:4433 is a part of 0.0.0.0:4433 (listen[0]); "
              "remove one of them");
  expectError(
      listening("'[::1]:4433', '0.0.0.0:4433', '[::]:4433'"),
      "e.yaml:12:10: listen[0]: [::1]:4433 is a part of [::]:4433 (listen[2]); remove one of them");
  configOf(listening("'0.0.0.0:4433', '[::]:4433', '192.0.2.1:4434', '[::1]:4434'"));
  configOf(listening("'0.0.0.0:4433', '[::1]:4433'"));
  configOf(listening("'[::]:4433', '192.0.2.1:4433'"));
}

TEST(ConfigChecks, SubflowsStayBelowTheirLimit) {
  std::string text = with(edgeText(), "wlan0}", "wlan0, subflows: 8}");
  expectError(
      with(text, "192.0.2.1:4433", "'a:1', 'b:1', '192.0.2.3:1', '192.0.2.4:1', '192.0.2.5:1'"),
      "e.yaml:8:5: peers[0]: would get 40 subflows (subflows of all uplinks times endpoints), more "
      "than 32; lower "
      "'subflows', remove endpoints, or raise tunnel.max-subflows at both gateways");
}

TEST(ConfigChecks, AFamilyThatIsLeftOutIsAWarning) {
  auto left = [](const std::vector<const char*>& texts) {
    std::vector<Prefix> routes;
    for (const char* text : texts) routes.push_back(*Prefix::parse(text));
    return familyLeftOut(routes);
  };
  EXPECT_EQ(left({}), "");
  EXPECT_EQ(left({"10.0.0.0/8", "fd00::/8"}), "");
  EXPECT_EQ(left({"0.0.0.0/0"}), "IPv6");
  EXPECT_EQ(left({"0.0.0.0/0", "fd00::/8"}), "IPv6");
  EXPECT_EQ(left({"0.0.0.0/1", "128.0.0.0/1"}), "IPv6");
  EXPECT_EQ(left({"0.0.0.0/1", "128.0.0.0/2", "192.0.0.0/2", "10.0.0.0/8"}), "IPv6");
  EXPECT_EQ(left({"0.0.0.0/1", "128.0.0.0/2", "10.0.0.0/8"}), "") << "it does not take all";
  EXPECT_EQ(left({"::/0"}), "IPv4");
  EXPECT_EQ(left({"2000::/3", "0.0.0.0/1"}), "IPv4");
  EXPECT_EQ(left({"::/1", "8000::/1"}), "IPv4");
  EXPECT_EQ(left({"2000::/4"}), "");
  for (const char* v6 : {"::/0", "2000::/3", "::/1"})
    EXPECT_EQ(left({"0.0.0.0/1", "128.0.0.0/1", v6}), "") << v6;

  std::string text = with(edgeText(), "routes: [10.1.0.0/16]", "routes: [0.0.0.0/0]");
  ConfigErrors warnings = configOf(text).warnings;
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_EQ(warnings[0].toString(),
            "e.yaml:4:11: device.routes: take all of IPv4 into the tunnel and leave IPv6 to the "
            "host's own "
            "routes: where it has IPv6, that leaves in clear; add \"::/0\" to them and to the "
            "prefixes of the "
            "peer, or keep IPv6 from leaving this host");
  EXPECT_THAT(configOf(edgeText()).warnings, testing::IsEmpty());
}

TEST(ConfigChecks, TunNeedsPrefixesForItsRoutes) {
  expectError(with(edgeText(), "routes: [10.1.0.0/16]", "routes: [10.1.0.0/16, 10.2.0.0/16]"),
              "e.yaml:4:25: device.routes[1]: 10.2.0.0/16 is in no peer's prefixes, so its packets "
              "would be "
              "dropped; add "
              "it to the prefixes of the peer behind which it lies");
  std::string text = with(edgeText(), "  routes: [10.1.0.0/16]\n", "");
  expectError(
      with(text, kPrefixes, ""),
      "e.yaml:7:5: peers[0]: has no prefixes, so no packet would go to it or be taken from it; add "
      "'prefixes' with "
      "the networks behind the peer");
  expectError(
      with(edgeText(), "device:\n", "device:\n  bridge: br0\n"),
      "e.yaml:3:11: device.bridge: a TUN device cannot join a bridge; set device.mode to tap, or "
      "remove the bridge");
}

TEST(ConfigChecks, ANetworkIsOnOneSide) {
  expectError(
      with(edgeText(), "  routes: [10.1.0.0/16]\n", "  networks: [10.7.0.0/16, 10.1.0.0/16]\n"),
      "e.yaml:4:27: device.networks[1]: 10.1.0.0/16 is among the prefixes of hub as well; a "
      "network is on "
      "this side or behind a peer; remove it there or here");
  configOf(with(edgeText(), "  routes:", "  networks: [10.0.0.0/8, 10.1.7.0/24]\n  routes:"));
}

TEST(ConfigChecks, TunHasNoFrames) {
  for (const char* key : {"ethertypes: [ipv4]", "ageing-time: 60s", "flood-limit: 10"}) {
    std::string name(key, std::string_view(key).find(':'));
    std::string column = std::to_string(5 + name.size());
    expectError(
        with(edgeText(), "device:\n", std::string("device:\n  ") + key + "\n"),
        "e.yaml:3:" + column + ": device." + name +
            ": is for frames, and a TUN device has none; set device.mode to tap, or remove it");
  }
}

TEST(ConfigChecks, TapTakesNoRoutesAndABridgePortNoAddresses) {
  EXPECT_THAT(
      errorsOf(with(edgeText(), "device:\n", "device:\n  mode: tap\n  bridge: br0\n")),
      ElementsAre(
          "e.yaml:5:14: device.addresses: a port of a bridge has no addresses of its own; give the "
          "addresses to the bridge, outside of Braid",
          "e.yaml:6:11: device.routes: a TAP device takes no routes; set device.mode to tun, or "
          "remove the "
          "routes"));
}

TEST(ConfigChecks, DeviceMtuMustCarryIpv6) {
  expectError(with(edgeText(), "device:\n", "device:\n  mtu: 1279\n"),
              "e.yaml:3:8: device.mtu: 1279 is too small for IPv6; use 1280 or more, or auto, or "
              "remove the "
              "IPv6 addresses");
  configOf(with(edgeText(), "device:\n", "device:\n  mtu: 1280\n"));
  configOf(with(with(edgeText(), "device:\n", "device:\n  mtu: 1279\n"), ", 'fd99::1/64'", ""));
}

TEST(ConfigChecks, UplinkIsNotTheDevice) {
  expectError(
      with(edgeText(), "interface: wlan0", "interface: braid0"),
      "e.yaml:6:29: uplinks[0].interface: is the tunnel's own device or its bridge; name an "
      "interface that leads to "
      "the peers");
}

TEST(ConfigChecks, TunnelDoesNotRunThroughItself) {
  std::string text = with(edgeText(), "routes: [10.1.0.0/16]", "routes: [192.0.0.0/8]");
  text = with(text, "prefixes: [10.1.0.0/16, ", "prefixes: [192.0.0.0/8, ");
  expectError(
      with(text, "wlan0}", "wlan0, gateway: none}"),
      "e.yaml:4:12: device.routes[0]: holds the endpoint 192.0.2.1:4433 of hub, and an uplink with "
      "'gateway: none' "
      "would send it into the tunnel; use 'gateway: auto' or the router's address at every uplink, "
      "or a narrower "
      "route");
  configOf(text);
}

// ---- groups

std::string withSecondHub(const std::string& first, const std::string& second) {
  return with(edgeText(), "  - name: hub\n", "  - name: hub\n    " + first + "\n") +
         "  - {name: hub2, pin: '" + kPinB +
         "', endpoints: ['192.0.2.2:4433'], prefixes: [10.1.0.0/16]" + second + "}\n";
}

TEST(ConfigChecks, PeersOfAGroupMayShareNetworks) {
  Config config = configOf(withSecondHub("group: hubs", ", group: hubs"));
  EXPECT_EQ(config.peers[0].options.group, "hubs");
  EXPECT_EQ(config.peers[1].options.prefixes, std::vector{*Prefix::parse("10.1.0.0/16")});
}

TEST(ConfigChecks, OthersMayNot) {
  for (auto [first, second] :
       {std::pair{"keepalive: 10s", ""}, {"group: hubs", ""}, {"group: hubs", ", group: other"}})
    EXPECT_THAT(errorsOf(withSecondHub(first, second)),
                ElementsAre(testing::HasSubstr(
                    "peers[1].prefixes[0]: '10.1.0.0/16' is given in peers[0].prefixes[0] "
                    "already; a network belongs to "
                    "one peer; remove one of them, or give both peers the same 'group'")));
  std::string twice = with(withSecondHub("group: hubs", ", group: hubs"),
                           "prefixes: [10.1.0.0/16],", "prefixes: [10.1.0.0/16, 10.1.0.0/16],");
  EXPECT_THAT(errorsOf(twice),
              ElementsAre(testing::HasSubstr("peers[1].prefixes[1]: '10.1.0.0/16' is given in")));
}

TEST(ConfigChecks, PeersOfAGroupShareANetwork) {
  std::string apart = with(withSecondHub("group: hubs", ", group: hubs"),
                           "prefixes: [10.1.0.0/16],", "prefixes: [10.1.7.0/24],");
  EXPECT_THAT(
      errorsOf(apart),
      ElementsAre(
          "e.yaml:9:12: peers[0].group: hub shares no prefix with another peer of hubs, so none "
          "can stand for it; give both the same prefixes, or remove the group",
          testing::HasSubstr(": peers[1].group: hub2 shares no prefix with another peer of ")));
  std::string third = withSecondHub("group: hubs", ", group: hubs") + "  - {name: hub3, pin: '" +
                      kPinC +
                      "', endpoints: ['192.0.2.3:4433'], prefixes: [10.1.7.0/24], group: hubs}\n";
  EXPECT_THAT(errorsOf(third),
              ElementsAre(testing::HasSubstr(": peers[2].group: hub3 shares no prefix")));
  configOf(with(third, "prefixes: [10.1.7.0/24]", "prefixes: [10.1.7.0/24, 10.1.0.0/16]"));
  configOf(with(edgeText(), "  - name: hub\n",
                "  - name: hub\n    group: hubs\n"));  // others may come later
}

TEST(ConfigChecks, FramesHaveNoGroups) {
  std::string text = with(
      edgeText(), "device:\n  addresses: [10.99.0.1/30, 'fd99::1/64']\n  routes: [10.1.0.0/16]\n",
      "device: {mode: tap}\n");
  expectError(with(text, "  - name: hub\n", "  - name: hub\n    group: hubs\n"),
              "e.yaml:7:12: peers[0].group: is for packets, and a TAP device carries frames; set "
              "device.mode "
              "to tun, or "
              "remove it");
}

TEST(ConfigChecks, AddressesAreNotTranslatedOnABridge) {
  std::string text = with(
      edgeText(), "device:\n  addresses: [10.99.0.1/30, 'fd99::1/64']\n  routes: [10.1.0.0/16]\n",
      "device: {mode: tap}\n");
  expectError(
      text + "nat: on\n",
      "e.yaml:10:6: nat: a TAP device bridges frames, and no addresses are translated there; set "
      "device.mode to "
      "tun, or remove it");
}

}  // namespace
}  // namespace braid::config_checks_test
