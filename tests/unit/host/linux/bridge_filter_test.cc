// Which bridges br_netfilter shows to the packet filter of IP. A folder replaces the host's.

#include "host/linux/bridge_filter.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/temporary_folder.h"

namespace braid::bridge_filter_test {
namespace {

struct BridgeFilterTest : testing::Test {
  BridgeFilterTest() {
    root.write("sys/class/net/br-lan/bridge/nf_call_iptables", "0\n");
    root.write("sys/class/net/br-lan/bridge/nf_call_ip6tables", "0\n");
    root.write("sys/class/net/lan0/mtu", "1500\n");
  }
  bool is(const std::string& interface, bool v6) const {
    return isFilteredBridge(interface, v6, root.path());
  }
  TemporaryFolder root;
};

TEST_F(BridgeFilterTest, ABridgeIsWhereTheHostOrTheBridgeSaysSo) {
  EXPECT_FALSE(is("br-lan", false)) << "the kernel has no br_netfilter";
  root.write("proc/sys/net/bridge/bridge-nf-call-iptables", "1\n");
  root.write("proc/sys/net/bridge/bridge-nf-call-ip6tables", "0\n");
  EXPECT_TRUE(is("br-lan", false));
  EXPECT_FALSE(is("br-lan", true));
  EXPECT_FALSE(is("lan0", false)) << "it is no bridge";
  EXPECT_FALSE(is("no-such", false));
  root.write("sys/class/net/br-lan/bridge/nf_call_ip6tables", "1\n");
  EXPECT_TRUE(is("br-lan", true)) << "by its own setting";
}

TEST_F(BridgeFilterTest, AServiceSeesTheSettingInAnotherFolder) {
  root.write("run/braid-sysctl/bridge/bridge-nf-call-iptables", "1\n");
  EXPECT_TRUE(is("br-lan", false));
}

TEST_F(BridgeFilterTest, WhatCannotBeSeenCountsAsOnWhereTheModuleIs) {
  root.write("sys/module/br_netfilter/initstate", "live\n");
  EXPECT_TRUE(is("br-lan", false));
  EXPECT_FALSE(is("lan0", false));
}

}  // namespace
}  // namespace braid::bridge_filter_test
