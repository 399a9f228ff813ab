#include "gateway/network/nat_manager.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "gateway/log/log.h"
#include "host/fake/fake_host.h"
#include "host/system.h"
#include "inet/ip.h"
#include "tests/unit/gateway/dtls/dtls_fixture.h"

namespace braid::router_keeper_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

class RouterKeeperTest : public testing::Test {
 protected:
  RouterKeeperTest() {
    config_.control.socket = folder_.file("hub.sock");
    PeerOptions& peer = config_.peers.emplace_back().options;
    peer.prefixes = {*Prefix::parse("10.1.0.0/24"), *Prefix::parse("10.1.1.0/24")};
  }
  bool remembers() const { return std::filesystem::exists(folder_.file("hub.sock.forwarding")); }

  TemporaryFolder folder_;
  FakeClock clock_;
  FakeHost host_{clock_, 1};
  Config config_;
};

TEST_F(RouterKeeperTest, NothingIsChangedWhereNothingIsAskedFor) {
  NatManager router(host_, "braid0", {});
  router.configure(config_, {"wlan0"});
  EXPECT_EQ(host_.translation(), nullptr);
  EXPECT_THAT(host_.net().configured(), IsEmpty());
  EXPECT_FALSE(remembers());
}

TEST_F(RouterKeeperTest, ThePeersPrefixesAreMasqueradedUntilTheEnd) {
  config_.router.natV4 = true;
  {
    NatManager router(host_, "braid0", {});
    router.configure(config_, {"wlan0"});
    ASSERT_NE(host_.translation(), nullptr);
    EXPECT_EQ(host_.translation()->device, "braid0");
    EXPECT_TRUE(host_.translation()->masqueradeV4);
    EXPECT_FALSE(host_.translation()->masqueradeV6);
    EXPECT_THAT(
        host_.translation()->sources,
        ElementsAre(AddressRange{*Address::parse("10.1.0.0"), *Address::parse("10.1.1.255")}));
  }
  EXPECT_EQ(host_.translation(), nullptr);
}

TEST_F(RouterKeeperTest, AReloadAddsAndRemoves) {
  NatManager router(host_, "braid0", {});
  router.configure(config_, {"wlan0"});
  config_.router.forwards.push_back({ip::kTcp, 80, 80, *Address::parse("10.1.0.9"), 0, {}, false});
  router.configure(config_, {"wlan0"});
  ASSERT_NE(host_.translation(), nullptr);
  EXPECT_EQ(host_.translation()->forwards, config_.router.forwards);
  config_.router.forwards.clear();
  config_.router.natV4 = config_.router.natV6 = true;
  router.configure(config_, {"wlan0"});
  EXPECT_THAT(host_.translation()->forwards, IsEmpty());
  config_.router = {};
  router.configure(config_, {"wlan0"});
  EXPECT_EQ(host_.translation(), nullptr);
}

TEST_F(RouterKeeperTest, WhatIsRefusedLeavesWhatWasThere) {
  NatManager router(host_, "braid0", {});
  config_.router.natV4 = true;
  router.configure(config_, {"wlan0"});
  Translation before = *host_.translation();
  Config next = config_;
  next.router.forwarding = true;
  next.router.natV6 = true;
  host_.net().refuseLines({"IPv6 forwarding"});
  EXPECT_THROW(router.configure(next, {"wlan0"}), SystemError);
  EXPECT_EQ(*host_.translation(), before);
  EXPECT_THAT(host_.net().configured(), IsEmpty());
  EXPECT_FALSE(remembers());
  host_.net().refuseLines({});
  host_.refuseTranslation(true);
  EXPECT_THROW(router.configure(next, {"wlan0"}), SystemError);
  EXPECT_THAT(host_.net().configured(), IsEmpty());
  host_.refuseTranslation(false);
  router.configure(next, {"wlan0"});
  EXPECT_TRUE(host_.translation()->masqueradeV6);
}

TEST_F(RouterKeeperTest, TranslationThatWasToEndIsThereStillWhenForwardingIsRefused) {
  NatManager router(host_, "braid0", {});
  config_.router.natV4 = true;
  router.configure(config_, {"wlan0"});
  Translation before = *host_.translation();
  Config next = config_;
  next.router.forwarding = true;
  next.router.natV4 = false;
  host_.net().refuseLines({"IPv4 forwarding"});
  EXPECT_THROW(router.configure(next, {"wlan0"}), SystemError);
  ASSERT_NE(host_.translation(), nullptr);
  EXPECT_EQ(*host_.translation(), before);
  host_.net().refuseLines({});
  router.configure(next, {"wlan0"});
  EXPECT_EQ(host_.translation(), nullptr);
}

TEST_F(RouterKeeperTest, ForwardingIsSwitchedOffInTheEndWhenItWasOff) {
  config_.router.forwarding = true;
  {
    NatManager router(host_, "braid0", {});
    router.configure(config_, {"wlan0"});
    EXPECT_THAT(host_.net().configured(), ElementsAre("IPv4 forwarding", "IPv6 forwarding"));
    EXPECT_EQ(host_.net().forwardingBefore(Address::Family::kV4), "1 lan0");
    EXPECT_THAT(host_.net().forwardingHosts(), ElementsAre("wlan0"));
    EXPECT_TRUE(remembers());
  }
  EXPECT_THAT(host_.net().configured(), IsEmpty());
  EXPECT_FALSE(remembers());
}

TEST_F(RouterKeeperTest, ForwardingThatWasOnIsNotOurs) {
  config_.router.forwarding = true;
  host_.net().setForwards(true);
  NatManager router(host_, "braid0", {});
  router.configure(config_, {"wlan0"});
  EXPECT_EQ(host_.net().forwardingBefore(Address::Family::kV4), "");
  EXPECT_FALSE(remembers());
}

TEST_F(RouterKeeperTest, AReloadNamesTheUplinksAnew) {
  config_.router.forwarding = true;
  NatManager router(host_, "braid0", {});
  router.configure(config_, {"wlan0"});
  router.configure(config_, {"wlan0", "wwan0"});
  EXPECT_THAT(host_.net().forwardingHosts(), ElementsAre("wlan0", "wwan0"));
}

TEST_F(RouterKeeperTest, AReloadThatIsRefusedLeavesForwardingAsItWas) {
  config_.router.forwarding = true;
  NatManager router(host_, "braid0", {});
  router.configure(config_, {"wlan0"});
  host_.net().refuseLines({"IPv6 forwarding"});
  EXPECT_THROW(router.configure(config_, {"wlan0"}), SystemError);
  EXPECT_THAT(host_.net().configured(), ElementsAre("IPv4 forwarding", "IPv6 forwarding"));
  EXPECT_TRUE(remembers());
}

TEST_F(RouterKeeperTest, TheWordOfAnOlderReleaseNamesTheFamiliesAlone) {
  config_.router.forwarding = true;
  std::ofstream(folder_.file("hub.sock.forwarding")) << "ipv4\n";
  host_.net().setForwards(true);
  NatManager router(host_, "braid0", {});
  router.configure(config_, {"wlan0"});
  EXPECT_EQ(host_.net().forwardingBefore(Address::Family::kV4), "-");
  EXPECT_EQ(host_.net().forwardingBefore(Address::Family::kV6), "");
}

TEST_F(RouterKeeperTest, WhoWasKilledLeavesWordForTheNextOne) {
  config_.router.forwarding = true;
  std::string word = folder_.file("hub.sock.forwarding"), copy = folder_.file("copy");
  {
    NatManager killed(host_, "braid0", {});
    killed.configure(config_, {"wlan0"});
    std::filesystem::copy_file(word, copy);
  }
  std::filesystem::rename(copy, word);
  host_.net().setForwards(true);
  NatManager next(host_, "braid0", {});
  next.configure(config_, {"wlan0"});
  EXPECT_EQ(host_.net().forwardingBefore(Address::Family::kV4), "1 lan0");
  EXPECT_EQ(host_.net().forwardingBefore(Address::Family::kV6), "1 lan0");
  config_.router.forwarding = false;
  next.configure(config_, {"wlan0"});
  EXPECT_EQ(host_.net().forwardingBefore(Address::Family::kV4), "");
  EXPECT_THAT(host_.net().configured(), Not(Contains("IPv4 forwarding")));
  EXPECT_FALSE(remembers());
}

}  // namespace
}  // namespace braid::router_keeper_test
