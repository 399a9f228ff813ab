// `streams`.

#include "tests/unit/gateway/config/config_fixture.h"

namespace braid::config_streams_test {
namespace {

using testing::ElementsAre;

std::string withStreams(const std::string& keys) {
  return edgeText() + "streams: {" + keys + "}\n";
}
void expectError(const std::string& keys, const std::string& error) {
  EXPECT_THAT(errorsOf(withStreams(keys)), ElementsAre(error));
}

TEST(ConfigStreams, AreOffWithoutASection) {
  EXPECT_FALSE(configOf(edgeText()).tunnel.streams.on);
}

TEST(ConfigStreams, ASectionSwitchesThemOnForTheWeb) {
  Config config = configOf(withStreams("source: client"));
  EXPECT_TRUE(config.tunnel.streams.on);
  EXPECT_EQ(config.streams.source, StreamsConfig::Source::kClient);
  EXPECT_THAT(
      config.streams.match,
      ElementsAre(StreamRule{std::nullopt, 80, 80}, StreamRule{std::nullopt, 443, 443},
                  StreamRule{std::nullopt, 8080, 8080}, StreamRule{std::nullopt, 8443, 8443}));
  EXPECT_TRUE(config.streams.exclude.empty());
}

TEST(ConfigStreams, EveryKeyIsRead) {
  Config config = configOf(withStreams(
      "enabled: off, source: own, connect: first, max-connections: 99, max-streams-per-peer: 50, "
      "new-streams-per-peer: 70, receive-window: 1MiB, "
      "peer-receive-limit: 4MiB, total-receive-limit: 16MiB, "
      "match: [{ports: 1-1023}, {network: 10.7.0.0/16}], exclude: [{network: "
      "'fd00::/8', ports: 22}], from: [10.1.0.0/16, 'fd01::/64'], "
      "accept: [{network: 10.1.7.0/24, ports: 443}]"));
  const StreamOptions& lane = config.tunnel.streams;
  EXPECT_FALSE(lane.on);
  EXPECT_EQ(config.streams.source, StreamsConfig::Source::kOwn);
  EXPECT_EQ(config.streams.connect, StreamsConfig::Connect::kFirst);
  EXPECT_EQ(config.streams.most, 99u);
  EXPECT_EQ(lane.most, 50u);
  EXPECT_EQ(lane.newPerSecond, 70u);
  EXPECT_EQ(lane.mostCredit, size_t{1} << 20);
  EXPECT_EQ(lane.heldBytes, size_t{4} << 20);
  EXPECT_EQ(lane.allHeldBytes, size_t{16} << 20);
  EXPECT_THAT(config.streams.match,
              ElementsAre(StreamRule{std::nullopt, 1, 1023},
                          StreamRule{Prefix::parse("10.7.0.0/16"), 1, 65535}));
  EXPECT_THAT(config.streams.exclude, ElementsAre(StreamRule{Prefix::parse("fd00::/8"), 22, 22}));
  EXPECT_THAT(config.streams.from,
              ElementsAre(*Prefix::parse("10.1.0.0/16"), *Prefix::parse("fd01::/64")));
  EXPECT_THAT(config.streams.accept,
              ElementsAre(StreamRule{Prefix::parse("10.1.7.0/24"), 443, 443}));
}

TEST(ConfigStreams, MistakesNameTheirPlaceAndARemedy) {
  expectError("source: server",
              "e.yaml:12:19: streams.source: 'server' is not known; use one of: client, own");
  expectError("match: []",
              "e.yaml:12:18: streams.match: is empty; name ports or networks, or set enabled: off");
  expectError("match: [{}]",
              "e.yaml:12:19: streams.match[0]: matches every connection; add ports, network or "
              "both, such as "
              "{ports: 443}");
  expectError("accept: [{}]",
              "e.yaml:12:20: streams.accept[0]: accepts every connection; add network or ports, or "
              "name 0.0.0.0/0 and ::/0");
  expectError("exclude: [{}]",
              "e.yaml:12:21: streams.exclude[0]: excludes every connection; add network or ports, "
              "or set enabled: "
              "off");
  expectError("peer-receive-limit: 4GiB",
              "e.yaml:12:31: streams.peer-receive-limit: is more than total-receive-limit; raise "
              "total-receive-limit as well");
  expectError("receive-window: 8MiB, peer-receive-limit: 4MiB",
              "e.yaml:12:27: streams.receive-window: is more than peer-receive-limit; raise "
              "peer-receive-limit as well");
}

}  // namespace
}  // namespace braid::config_streams_test
