#include "gateway/config/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace braid::settings_restart_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

// One text for each key that differs.
std::vector<std::string> needsRestart(const Config& before, Config after, size_t bufferSize,
                                      const std::string& text = "{}") {
  after.path = "e.yaml";
  std::vector<std::string> out;
  ConfigNode tree = std::get<ConfigNode>(parseYaml(text));
  for (const ConfigError& e : braid::needsRestart(before, after, tree, bufferSize))
    out.push_back(e.toString());
  return out;
}

TEST(NeedsRestart, NothingForTheSameAndForWhatAReloadCarriesOut) {
  Config before, after;
  EXPECT_THAT(needsRestart(before, after, 2048), IsEmpty());
  after.logLevel = "debug";
  after.listen.push_back(*Endpoint::parse("0.0.0.0:4433"));
  after.peers.emplace_back();
  after.uplinks.emplace_back();
  after.device.mtu = 1400;
  after.device.routes.push_back(*Prefix::parse("10.0.0.0/8"));
  after.tunnel.holdTime = 1s;
  after.tunnel.recovery = "fuso";
  after.tunnel.recoveryClasses.emplace_back();
  after.tunnel.recoveryOptions.mMax = 2;
  after.trace = "/run/braid/t.trace";
  EXPECT_THAT(needsRestart(before, after, 2048), IsEmpty());
}

TEST(NeedsRestart, ForADeviceMtuThatBuffersDoNotHold) {
  Config before, after;
  after.device.mtu = 2030;
  EXPECT_THAT(needsRestart(before, after, 2048), IsEmpty());
  after.device.mtu = 2031;
  EXPECT_THAT(
      needsRestart(before, after, 2048, "device: {mtu: 2031}\n"),
      ElementsAre(
          "e.yaml:1:15: device.mtu: packet buffers hold packets of up to 2030 bytes: a larger "
          "value needs a restart; use 2030 or less, or restart the daemon"));
  EXPECT_THAT(needsRestart(before, after, 9018), IsEmpty());
}

TEST(NeedsRestart, NamesEachKeyThatIsFixed) {
  using Change = std::function<void(Config&)>;
  for (const auto& [key, change] : std::vector<std::pair<std::string, Change>>{
           {"identity.key", [](Config& c) { c.identity.key = "x"; }},
           {"identity.certificate", [](Config& c) { c.identity.certificate = "x"; }},
           {"device.name", [](Config& c) { c.device.name = "braid9"; }},
           {"device.mode", [](Config& c) { c.tunnel.mode = TunnelOptions::Mode::kTap; }},
           {"device.bridge", [](Config& c) { c.device.bridge = "br0"; }},
           {"offloads.device", [](Config& c) { c.offloads.device = false; }},
           {"offloads.sockets", [](Config& c) { c.offloads.sockets = false; }},
           {"tunnel.mtu", [](Config& c) { c.tunnel.outerMtu = 1400; }},
           {"tunnel.max-mtu", [](Config& c) { c.tunnel.maxOuterMtu = 9000; }},
           {"tunnel.max-flows", [](Config& c) { c.tunnel.maxFlows = 1; }},
           {"tunnel.ack-shim.max-flows", [](Config& c) { c.tunnel.shim.maxFlows = 1; }},
           {"tunnel.cipher", [](Config& c) { c.cipher = AeadKind::kAes256Gcm; }},
           {"recovery.decode-buffer", [](Config& c) { c.tunnel.decodeBuffer = 0; }},
           {"streams.enabled", [](Config& c) { c.tunnel.streams.on = true; }},
           {"streams.total-receive-limit", [](Config& c) { c.tunnel.streams.allHeldBytes = 1; }},
           {"control.socket", [](Config& c) { c.control.socket = "/run/x.sock"; }},
           {"control.group", [](Config& c) { c.control.group = "adm"; }},
           {"state", [](Config& c) { c.state = "/x.state"; }},
           {"peers-folder", [](Config& c) { c.peersFolder = "/x"; }}}) {
    Config before, after;
    change(after);
    EXPECT_THAT(
        needsRestart(before, after, 2048),
        ElementsAre("e.yaml: " + key +
                    ": a changed value needs a restart; set it back, or restart the daemon"));
  }
}

TEST(NeedsRestart, NamesThePlaceOfTheKeyOrOfWhatIsLeftAroundIt) {
  Config before, after;
  after.tunnel.maxOuterMtu = 9000;
  after.tunnel.shim.maxFlows = 1;
  after.device.name = "braid9";
  after.state = "/x.state";
  EXPECT_THAT(
      needsRestart(before, after, 2048,
                   "device: {name: braid9}\ntunnel:\n  max-mtu: 9000\n  ack-shim: {on: 1}\n"),
      ElementsAre(StartsWith("e.yaml: state: "), StartsWith("e.yaml:1:16: device.name: "),
                  StartsWith("e.yaml:3:12: tunnel.max-mtu: "),
                  StartsWith("e.yaml:4:13: tunnel.ack-shim.max-flows: ")));
}

}  // namespace
}  // namespace braid::settings_restart_test
