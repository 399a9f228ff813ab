#include "gateway/config/config_restart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace braid::config_restart_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

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
  EXPECT_THAT(needsRestart(before, after, 2048), ElementsAre(StartsWith("device.mtu: ")));
  EXPECT_THAT(needsRestart(before, after, 9018), IsEmpty());
}

TEST(NeedsRestart, NamesEachKeyThatIsFixed) {
  Config before, after;
  after.device.name = "braid9";
  after.tunnel.mode = TunnelOptions::Mode::kTap;
  after.identity.key = "other.key";
  EXPECT_THAT(
      needsRestart(before, after, 2048),
      ElementsAre(StartsWith("identity.key: "), StartsWith("device.name: "), StartsWith("device.mode: ")));
  for (auto change : std::vector<std::function<void(Config&)>>{
           [](Config& c) { c.identity.certificate = "x"; }, [](Config& c) { c.device.bridge = "br0"; },
           [](Config& c) { c.tunnel.outerMtu = 1400; }, [](Config& c) { c.tunnel.maxOuterMtu = 9000; },
           [](Config& c) { c.tunnel.maxFlows = 1; }, [](Config& c) { c.tunnel.decodeBuffer = 0; },
           [](Config& c) { c.control.socket = "/run/x.sock"; }, [](Config& c) { c.control.group = "adm"; },
           [](Config& c) { c.state = "/x.state"; }, [](Config& c) { c.peersFolder = "/x"; },
           [](Config& c) { c.workers = 2; }, [](Config& c) { c.tunnel.streams.on = true; },
           [](Config& c) { c.tunnel.streams.allHeldBytes = 1; },
           [](Config& c) { c.cipher = AeadKind::kAes256Gcm; }}) {
    Config other;
    change(other);
    EXPECT_EQ(needsRestart(before, other, 2048).size(), 1u);
  }
}

}  // namespace
}  // namespace braid::config_restart_test
