// The configuration reader must accept what braidctl writes.

#include "ctl/join/gateway_yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/config/config.h"
#include "tunnel/wire/handshake_envelope.h"

namespace braid::gateway_yaml_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Prefix net(const char* text) {
  return *Prefix::parse(text);
}

Config read(const std::string& yaml) {
  LoadOptions options;
  options.checkIdentity = false;
  ConfigResult result = parseConfig(yaml, "/etc/braid/x.yaml", options);
  if (auto* errors = std::get_if<ConfigErrors>(&result)) {
    for (const ConfigError& error : *errors) ADD_FAILURE() << error.toString();
    return {};
  }
  return std::get<Config>(std::move(result));
}

EdgePlan samplePlan() {
  EdgePlan plan;
  plan.files.name = "edge";
  plan.uplinks = {{"wlan0"}, {"wwan0"}};
  plan.networks = {net("192.168.7.0/24")};
  plan.concentrator = {{"203.0.113.1", 4433}, {"2001:db8::1", 4433}, {"gw.example.net", 4433}};
  plan.pin.fill(5);
  plan.answer.code = JoinCode::kJoined;
  plan.answer.name = "van-7";
  plan.answer.concentrator = {*Address::parse("10.99.0.1"), *Address::parse("fd99::1")};
  plan.answer.edge = {{*Address::parse("10.99.0.2"), 24}, {*Address::parse("fd99::2"), 64}};
  plan.answer.networks = {net("10.1.0.0/16"), net("fd00:1::/64")};
  return plan;
}

TEST(GatewayYamlTest, UplinksHaveTheirNamesAndMeters) {
  EdgePlan plan = samplePlan();
  plan.uplinks = {{"wlan0", "wifi"}, {"wwan0", "wwan0", true}, {"wwan1", "lte", true, "50GB"}};
  const Config config = read(edgeYaml(plan));
  ASSERT_EQ(config.uplinks.size(), 3u);
  EXPECT_EQ(config.uplinks[0].name, "wifi");
  EXPECT_EQ(config.uplinks[0].preference.use, PathUse::kNormal);
  EXPECT_EQ(config.uplinks[1].name, "wwan0");
  EXPECT_EQ(config.uplinks[1].preference.use, PathUse::kMetered);
  EXPECT_FALSE(config.uplinks[1].meter);
  EXPECT_EQ(config.uplinks[2].name, "lte");
  EXPECT_EQ(config.uplinks[2].preference.use, PathUse::kMetered);
  ASSERT_TRUE(config.uplinks[2].meter);
  EXPECT_EQ(config.uplinks[2].meter->cap, 50'000'000'000u);
}

TEST(GatewayYamlTest, AnEdgeHasWhatItWasGiven) {
  EdgePlan plan = samplePlan();
  Config config = read(edgeYaml(plan));
  EXPECT_EQ(config.identity.key, "/etc/braid/edge.key");
  EXPECT_EQ(config.device.addresses, plan.answer.edge);
  EXPECT_EQ(config.device.routes, plan.answer.networks);
  EXPECT_EQ(config.device.networks, plan.networks);
  ASSERT_EQ(config.uplinks.size(), 2u);
  EXPECT_EQ(config.uplinks[1].interface, "wwan0");
  ASSERT_EQ(config.peers.size(), 1u);
  EXPECT_EQ(config.peers[0].options.pin, plan.pin);
  EXPECT_EQ(config.peers[0].options.endpoints.size(), 2u);
  EXPECT_THAT(config.peers[0].hosts, ElementsAre(HostPort{"gw.example.net", 4433}));
  EXPECT_THAT(
      config.peers[0].options.prefixes,
      ElementsAre(net("10.99.0.0/24"), net("fd99::/64"), net("10.1.0.0/16"), net("fd00:1::/64")));
  EXPECT_TRUE(config.tunnel.streams.on);
}

TEST(GatewayYamlTest, AnEdgeWithoutALanAndWithoutNetworksIsRightToo) {
  EdgePlan plan = samplePlan();
  plan.networks.clear();
  plan.answer.networks.clear();
  plan.answer.edge.pop_back();
  plan.answer.concentrator.pop_back();
  Config config = read(edgeYaml(plan));
  EXPECT_TRUE(config.device.routes.empty());
  EXPECT_TRUE(config.device.networks.empty());
}

TEST(GatewayYamlTest, EverythingMayGoThroughTheTunnel) {
  EdgePlan plan = samplePlan();
  plan.answer.networks = {net("0.0.0.0/0"), net("::/0")};
  EXPECT_EQ(read(edgeYaml(plan)).device.routes, plan.answer.networks);
  EXPECT_EQ(read(edgeYaml(plan)).device.whenDown, DeviceConfig::WhenDown::kBlock);
  plan.answer.networks = {net("10.0.0.0/8")};
  EXPECT_EQ(read(edgeYaml(plan)).device.whenDown, DeviceConfig::WhenDown::kUnset);
}

TEST(GatewayYamlTest, OtherTunnelsOfTheMachineMayGoPastIt) {
  EdgePlan plan = samplePlan();
  plan.answer.networks = {net("0.0.0.0/0"), net("::/0")};
  plan.bypassMarks = {{0x80000, 0xff0000}, {0xca6c, 0xffffffff}};
  EXPECT_EQ(read(edgeYaml(plan)).device.bypassMarks, plan.bypassMarks);
}

TEST(GatewayYamlTest, AConcentratorListensAndWaitsForThoseWhoAreInvited) {
  ConcentratorPlan plan;
  plan.files.name = "hub";
  plan.addresses = {{*Address::parse("10.99.0.1"), 24}, {*Address::parse("fd99::1"), 64}};
  plan.networks = {net("10.1.0.0/16")};
  plan.port = 5000;
  plan.device = "braid7";
  Config config = read(concentratorYaml(plan));
  EXPECT_EQ(config.device.name, "braid7");
  EXPECT_EQ(config.device.addresses, plan.addresses);
  EXPECT_EQ(config.device.networks, plan.networks);
  EXPECT_THAT(config.listen,
              ElementsAre(*Endpoint::parse("0.0.0.0:5000"), *Endpoint::parse("[::]:5000")));
  EXPECT_TRUE(config.peers.empty());
}

TEST(GatewayYamlTest, SettingsOfTheRouterAreWrittenWhereTheUserAgrees) {
  std::string yaml = edgeYaml(samplePlan());
  EXPECT_EQ(withRouter(yaml, {}), yaml);
  Config config = read(withRouter(yaml, {.forwarding = true, .nat = true}));
  EXPECT_TRUE(config.router.forwarding);
  EXPECT_TRUE(config.router.natV4);
}

}  // namespace
}  // namespace braid::gateway_yaml_test
