// The meaning of a correct configuration file.

#include "tests/unit/gateway/config/config_fixture.h"

namespace braid::config_values_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(ConfigValues, MinimalFileGivesTheDefaults) {
  Config c = configOf(edgeText());
  EXPECT_EQ(c.path, "e.yaml");
  EXPECT_EQ(c.identity.key, "edge.key");
  EXPECT_EQ(c.device.name, "braid0");
  EXPECT_EQ(c.device.mtu, 0u);
  EXPECT_EQ(c.device.addresses.at(0).toString(), "10.99.0.1/30");
  EXPECT_EQ(c.device.addresses.at(1).toString(), "fd99::1/64");
  EXPECT_EQ(c.device.routes.at(0).toString(), "10.1.0.0/16");
  EXPECT_EQ(c.uplinks.at(0).subflows, 1u);
  EXPECT_EQ(c.uplinks.at(0).gateway, UplinkConfig::Gateway::kAuto);
  EXPECT_EQ(c.peers.at(0).options.name, "hub");
  EXPECT_EQ(c.peers.at(0).options.pin[31], 31);
  EXPECT_EQ(c.peers.at(0).options.endpoints.at(0).toString(), "192.0.2.1:4433");
  EXPECT_EQ(c.peers.at(0).options.prefixes.size(), 2u);
  EXPECT_EQ(c.peers.at(0).options.keepalive, 10s);
  EXPECT_EQ(c.control.socket, "/run/braid/e.sock");
  EXPECT_EQ(c.control.group, "");
  EXPECT_EQ(c.cipher, std::nullopt);
  EXPECT_EQ(c.logLevel, "info");
  EXPECT_EQ(c.tunnel.mode, TunnelOptions::Mode::kTun);
  EXPECT_EQ(c.tunnel.outerMtu, TunnelOptions{}.outerMtu);
  EXPECT_EQ(c.tunnel.repairTime, TunnelOptions{}.repairTime);
}

TEST(ConfigValues, AnUplinkIsNamedByInterfaceMacOrPath) {
  auto with = [](const std::string& uplink) {
    std::string text = edgeText();
    std::string before = "{name: wifi, interface: wlan0}";
    text.replace(text.find(before), before.size(), uplink);
    return configOf(text).uplinks.at(0);
  };
  UplinkConfig byMac = with("{name: wifi, mac: \"02:00:5E:00:53:01\", resolvers: [192.0.2.53]}");
  EXPECT_EQ(byMac.selector().toString(), "interface with MAC 02:00:5e:00:53:01");
  EXPECT_THAT(byMac.resolvers, ElementsAre(*Address::parse("192.0.2.53")));
  UplinkConfig byPath = with("{name: wifi, path: \"pci-0000:00:14.0-usb-0:2:1.0\"}");
  EXPECT_EQ(byPath.selector().toString(), "interface at pci-0000:00:14.0-usb-0:2:1.0");
  UplinkConfig byAltname = with("{interface: wan-behind-the-cupboard}");
  EXPECT_EQ(byAltname.name, "wan-behind-the-cupboard");
}

TEST(ConfigValues, OffloadsAreOnUnlessTurnedOff) {
  EXPECT_TRUE(configOf(edgeText()).offloads.device);
  EXPECT_TRUE(configOf(edgeText()).offloads.sockets);
  OffloadsConfig one = configOf(edgeText() + "offloads: {device: off}\n").offloads;
  EXPECT_FALSE(one.device);
  EXPECT_TRUE(one.sockets);
  OffloadsConfig other = configOf(edgeText() + "offloads: {sockets: off}\n").offloads;
  EXPECT_TRUE(other.device);
  EXPECT_FALSE(other.sockets);
}

TEST(ConfigValues, EveryTunnelKeyReachesItsOption) {
  Config c = configOf(
      edgeText() +
      "tunnel:\n"
      "  controller: newreno\n  scheduler: ecf\n  cipher: chacha20-poly1305\n  ecn-proxy: off\n"
      "  mtu: 1400\n  max-mtu: 9000\n  rekey-after: 10min\n  rekey-packets: 65536\n"
      "  codel-target: 2.5ms\n  codel-interval: 50ms\n  queue-limit: 1MiB\n  reorder-timeout: "
      "250ms\n"
      "  reorder-limit: 2MB\n  delivery-timeout: 1500ms\n  max-flows: 100\n  flow-idle-timeout: "
      "2min\n"
      "  max-subflows: 64\n");
  const TunnelOptions& t = c.tunnel;
  EXPECT_EQ(t.scheduler, "ecf");
  EXPECT_FALSE(t.ecnProxy);
  EXPECT_EQ(c.cipher, AeadKind::kChaCha20Poly1305);
  EXPECT_EQ(t.outerMtu, 1400u);
  EXPECT_EQ(t.maxOuterMtu, 9000u);
  EXPECT_EQ(t.rekeyAfter, 600s);
  EXPECT_EQ(t.rekeyPackets, 65536u);
  EXPECT_EQ(t.codelTarget, 2500us);
  EXPECT_EQ(t.codelInterval, 50ms);
  EXPECT_EQ(t.queueBytes, 1u << 20);
  EXPECT_EQ(t.holdTime, 250ms);
  EXPECT_EQ(t.holdBytes, 2'000'000u);
  EXPECT_EQ(t.repairTime, 1500ms);
  EXPECT_EQ(t.maxFlows, 100u);
  EXPECT_EQ(t.flowIdle, 120s);
  EXPECT_EQ(t.maxSubflows, 64u);
}

TEST(ConfigValues, EveryControllerIsAccepted) {
  for (std::string_view name : kControllerNames) {
    EXPECT_EQ(configOf(edgeText() + "tunnel: {controller: " + std::string(name) + "}\n")
                  .tunnel.controller,
              name);
  }
}

TEST(ConfigValues, AmpOptions) {
  Config plain = configOf(edgeText() + "tunnel: {controller: amp}\n");
  EXPECT_EQ(plain.tunnel.amp.gamma, 2u);
  EXPECT_EQ(plain.tunnel.amp.tau, 8u);
  EXPECT_EQ(plain.tunnel.amp.beta, 4);
  EXPECT_EQ(plain.tunnel.amp.minimumWindow, 2u);
  Config c = configOf(edgeText() +
                      "tunnel: {controller: amp, initial-window: 4, amp: {gamma: 3, tau: 6, beta: "
                      "5, cwnd-min: 1}}\n");
  EXPECT_EQ(c.tunnel.initialWindow, 4u);
  EXPECT_EQ(c.tunnel.amp.gamma, 3u);
  EXPECT_EQ(c.tunnel.amp.tau, 6u);
  EXPECT_EQ(c.tunnel.amp.beta, 5);
  EXPECT_EQ(c.tunnel.amp.minimumWindow, 1u);
}

TEST(ConfigValues, AmpBetaFromTheFabric) {
  Config c =
      configOf(edgeText() + "tunnel: {controller: amp, amp: {bdp: 20, mark-threshold: 10}}\n");
  EXPECT_EQ(c.tunnel.amp.beta, 3);
}

TEST(ConfigValues, CipherAndMtuAuto) {
  Config c = configOf(edgeText() + "tunnel: {cipher: auto, mtu: auto}\n");
  EXPECT_EQ(c.cipher, std::nullopt);
  EXPECT_EQ(c.tunnel.outerMtu, 0u);
}

TEST(ConfigValues, UplinkGatewaysAndSources) {
  std::string list =
      "- {interface: wlan0, gateway: auto}\n"
      "  - {interface: eth0, gateway: none, subflows: 8}\n"
      "  - {interface: wwan0, gateway: 192.0.2.254, source: 192.0.2.7}\n"
      "  - {name: dsl, interface: ppp0, gateway: [192.0.2.1, 'fe80::1'], source: [192.0.2.9, "
      "'2001:db8::9']}\n";
  Config c = configOf(with(edgeText(), "- {name: wifi, interface: wlan0}\n", list));
  ASSERT_EQ(c.uplinks.size(), 4u);
  EXPECT_EQ(c.uplinks[0].name, "wlan0") << "an uplink without a name is called like its interface";
  EXPECT_EQ(c.uplinks[1].gateway, UplinkConfig::Gateway::kNone);
  EXPECT_EQ(c.uplinks[1].subflows, 8u);
  EXPECT_EQ(c.uplinks[2].gateway, UplinkConfig::Gateway::kAddress);
  EXPECT_EQ(c.uplinks[2].gateways.at(0).toString(), "192.0.2.254");
  EXPECT_EQ(c.uplinks[2].sources.at(0).toString(), "192.0.2.7");
  EXPECT_EQ(c.uplinks[3].gateways.at(1).toString(), "fe80::1");
  EXPECT_EQ(c.uplinks[3].sources.at(1).toString(), "2001:db8::9");
}

TEST(ConfigValues, EndpointsKeepHostNamesAsText) {
  Config c = configOf(
      with(edgeText(), "[192.0.2.1:4433]", "[vpn.example.net:443, '[2001:db8::1]:4433', hub:1]"));
  const PeerConfig& peer = c.peers.at(0);
  ASSERT_EQ(peer.options.endpoints.size(), 1u);
  EXPECT_EQ(peer.options.endpoints[0].toString(), "[2001:db8::1]:4433");
  EXPECT_THAT(peer.hosts, ElementsAre(HostPort{"vpn.example.net", 443}, HostPort{"hub", 1}));
}

TEST(ConfigValues, ResponderNeedsNoUplinksAndNoEndpoints) {
  std::string text = with(edgeText(), "uplinks:\n  - {name: wifi, interface: wlan0}\n",
                          "listen: ['0.0.0.0:4433', '[::]:4433']\n");
  Config c = configOf(with(text, "    endpoints: [192.0.2.1:4433]\n", ""));
  EXPECT_THAT(c.uplinks, IsEmpty());
  ASSERT_EQ(c.listen.size(), 2u);
  EXPECT_EQ(c.listen[1].toString(), "[::]:4433");
}

TEST(ConfigValues, WhatATapDeviceBridges) {
  auto bridgeOf = [](const std::string& keys) {
    std::string tap = "  {mode: tap, bridge: br0" + keys + "}\n";
    return configOf(with(edgeText(),
                         "  addresses: [10.99.0.1/30, 'fd99::1/64']\n  routes: [10.1.0.0/16]\n",
                         tap))
        .tunnel.bridge;
  };
  BridgeOptions usual = bridgeOf("");
  EXPECT_THAT(usual.etherTypes, ElementsAre(0x0800, 0x0806, 0x86dd));
  EXPECT_FALSE(usual.allTypes);
  EXPECT_FALSE(usual.spanningTree);
  EXPECT_EQ(usual.macAge, 300s);
  EXPECT_EQ(usual.floodLimit, 1000u);
  BridgeOptions own =
      bridgeOf(", ethertypes: [ipv6, '0x8863', 0x88B5, stp], ageing-time: 3s, flood-limit: 20000");
  EXPECT_THAT(own.etherTypes, ElementsAre(0x86dd, 0x8863, 0x88b5));
  EXPECT_FALSE(own.allTypes);
  EXPECT_TRUE(own.spanningTree);
  EXPECT_EQ(own.macAge, 3s);
  EXPECT_EQ(own.floodLimit, 20'000u);
  EXPECT_TRUE(bridgeOf(", ethertypes: [any]").allTypes);
}

TEST(ConfigValues, NetworksOfThisSide) {
  Config c = configOf(
      with(edgeText(), "  routes:", "  networks: [192.168.7.0/24, 'fd07::/48']\n  routes:"));
  ASSERT_EQ(c.device.networks.size(), 2u);
  EXPECT_EQ(c.device.networks[1].toString(), "fd07::/48");
}

TEST(ConfigValues, TapJoinsABridgeAndNeedsNoPrefixes) {
  std::string text =
      with(edgeText(), "  addresses: [10.99.0.1/30, 'fd99::1/64']\n  routes: [10.1.0.0/16]\n",
           "  {name: tap7, mode: tap, bridge: br0, mtu: 1400}\n");
  Config c = configOf(with(text, "    prefixes: [10.1.0.0/16, 10.99.0.0/30]\n", ""));
  EXPECT_EQ(c.tunnel.mode, TunnelOptions::Mode::kTap);
  EXPECT_EQ(c.device.name, "tap7");
  EXPECT_EQ(c.device.bridge, "br0");
  EXPECT_EQ(c.device.mtu, 1400u);
}

TEST(ConfigValues, ControlLogAndKeepalive) {
  Config c =
      configOf(edgeText() +
               "    keepalive: 0\n"
               "control: {socket: /run/braid/van.sock, group: netdev}\nlog: {level: debug}\n");
  EXPECT_EQ(c.control.socket, "/run/braid/van.sock");
  EXPECT_EQ(c.control.group, "netdev");
  EXPECT_EQ(c.logLevel, "debug");
  EXPECT_EQ(c.peers[0].options.keepalive, 0s);
}

TEST(ConfigValues, NestedPrefixesOfDifferentPeersAreAllowed) {
  Config c = configOf(edgeText() + "  - {name: spoke, pin: '" + kPinB +
                      "', endpoints: ['192.0.2.2:1'], prefixes: [10.1.2.0/24]}\n");
  EXPECT_EQ(c.peers.size(), 2u);
}

TEST(ConfigValues, DefaultRouteIsFineWithRoutingTablesOfTheUplinksOwn) {
  std::string text = with(edgeText(), "routes: [10.1.0.0/16]", "routes: [0.0.0.0/0]");
  Config c = configOf(with(text, "prefixes: [10.1.0.0/16, ", "prefixes: [0.0.0.0/0, "));
  EXPECT_EQ(c.device.routes.at(0).toString(), "0.0.0.0/0");
}

TEST(ConfigValues, JsonIsYaml) {
  Config c = configOf(
      std::string("{\n \"identity\": {\"key\": \"a.key\", \"certificate\": \"a.crt\"},\n"
                  " \"listen\": [\n  \"0.0.0.0:4433\",\n  \"[::]:4433\"\n ],\n \"peers\": [\n  {\n"
                  "   \"name\": \"hub\",\n   \"pin\": \"") +
      kPinA + "\",\n   \"prefixes\": [\"fd00::/16\"],\n   \"keepalive\": \"1s\"\n  }\n ]\n}\n");
  EXPECT_EQ(c.listen.size(), 2u);
  EXPECT_EQ(c.peers.at(0).options.prefixes.at(0).toString(), "fd00::/16");
}

TEST(ConfigValues, ErrorTextWithoutPlaceAndKey) {
  EXPECT_EQ((ConfigError{"a.yaml", 0, 0, "", "is bad", "fix it"}).toString(),
            "a.yaml: is bad; fix it");
  EXPECT_EQ((ConfigError{"a.yaml", 3, 9, "peers[0].pin", "is bad", "fix it"}).toString(),
            "a.yaml:3:9: peers[0].pin: is bad; fix it");
}

}  // namespace
}  // namespace braid::config_values_test
