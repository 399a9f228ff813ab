// `tunnel.ack-shim`.

#include "tests/unit/gateway/config/config_fixture.h"

namespace braid::config_shim_test {
namespace {

using testing::ElementsAre;

std::string withShim(const std::string& keys) {
  return edgeText() + "tunnel: {ack-shim: {" + keys + "}}\n";
}
void expectError(const std::string& keys, const std::string& error) {
  EXPECT_THAT(errorsOf(withShim(keys)), ElementsAre(error));
}

TEST(ConfigShim, IsOnWithThePapersValues) {
  Config config = configOf(edgeText());
  EXPECT_TRUE(config.tunnel.ackShim);
  EXPECT_EQ(config.tunnel.shim.alpha, 10u);
  EXPECT_EQ(config.tunnel.shim.phi, 3);
  EXPECT_EQ(config.tunnel.shim.gamma, 100'000u);
  EXPECT_EQ(config.tunnel.shim.rtoMin, 200ms);
  EXPECT_EQ(config.tunnel.shim.inactivity, 1s);
  EXPECT_FALSE(config.tunnel.shim.sackGap);
  EXPECT_TRUE(config.tunnel.shim.rules.empty());
}

TEST(ConfigShim, EveryKeyIsRead) {
  Config config = configOf(withShim(
      "enabled: off, alpha: 4, phi: 2, gamma: 1MB, rto-min: 300ms, inactivity: 2s, "
      "max-flows: 100, replay: off, sack-gap: on, "
      "exclude: [{network: 10.7.0.0/16, ports: 80-90}, {ports: 22}, {network: 'fd00::/8'}]"));
  const AckShimOptions& shim = config.tunnel.shim;
  EXPECT_FALSE(config.tunnel.ackShim);
  EXPECT_EQ(shim.alpha, 4u);
  EXPECT_EQ(shim.phi, 2);
  EXPECT_EQ(shim.gamma, 1'000'000u);
  EXPECT_EQ(shim.rtoMin, 300ms);
  EXPECT_EQ(shim.inactivity, 2s);
  EXPECT_EQ(shim.maxFlows, 100u);
  EXPECT_FALSE(shim.replay);
  EXPECT_TRUE(shim.sackGap);
  ASSERT_EQ(shim.rules.size(), 3u);
  EXPECT_EQ(shim.rules[0].prefix, Prefix::parse("10.7.0.0/16"));
  EXPECT_EQ(shim.rules[0].firstPort, 80);
  EXPECT_EQ(shim.rules[0].lastPort, 90);
  EXPECT_EQ(shim.rules[1].prefix.address.family, Address::Family::kNone);
  EXPECT_EQ(shim.rules[1].lastPort, 22);
  EXPECT_EQ(shim.rules[2].lastPort, 65535);
  for (const ShimRule& rule : shim.rules) EXPECT_FALSE(rule.enabled);
}

TEST(ConfigShim, MistakesNameTheirPlaceAndARemedy) {
  expectError(
      "alpha: 0",
      "e.yaml:12:28: tunnel.ack-shim.alpha: '0' is outside 1 to 1000; use a number in that range");
  expectError("enabled: yes",
              "e.yaml:12:30: tunnel.ack-shim.enabled: 'yes' is not known; use one of: on, off");
  expectError("gamma: 10B",
              "e.yaml:12:28: tunnel.ack-shim.gamma: '10B' is outside 1000B to 1GiB; use a size in "
              "that range");
  expectError("rto-min: 1ms",
              "e.yaml:12:30: tunnel.ack-shim.rto-min: '1ms' is outside 10ms to 1min; use a time in "
              "that range");
  expectError(
      "exclude: [{}]",
      "e.yaml:12:31: tunnel.ack-shim.exclude[0]: excludes every flow; add network or ports, or set "
      "enabled: off instead");
  expectError(
      "exclude: [{ports: 22, net: 10.7.0.0/16}]",
      "e.yaml:12:43: tunnel.ack-shim.exclude[0].'net': unknown key; known here: network, ports");
  expectError(
      "exclude: [{network: 10.7.0.1/16}]",
      "e.yaml:12:41: tunnel.ack-shim.exclude[0].network: '10.7.0.1/16' has host bits set; write "
      "10.7.0.0/16 for the network or 10.7.0.1/32 for the one host");
}

TEST(ConfigShim, ATapDeviceHasOne) {
  std::string text = with(edgeText(), "  routes: [10.1.0.0/16]\n", "  mode: tap\n");
  EXPECT_THAT(errorsOf(text + "tunnel: {ack-shim: {alpha: 4}}\n"), ElementsAre());
}

}  // namespace
}  // namespace braid::config_shim_test
