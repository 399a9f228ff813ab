// What policy routing rules show of other tunnels, and whether a guard cuts these.

#include "ctl/join/other_tunnels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include <optional>

#include "ctl/doctor/doctor.h"

namespace braid::other_tunnels_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct OtherTunnelsTest : testing::Test {
  OtherTunnelsTest() {
    config.device.routes = {*Prefix::parse("0.0.0.0/0")};
    config.device.whenDown = DeviceConfig::WhenDown::kBlock;
  }
  RuleSpec& rule(uint32_t priority, MarkMatch mark, uint32_t table, bool inverted = false) {
    RuleSpec& spec = rules.emplace_back().spec;
    spec.priority = priority;
    spec.mark = mark.value;
    spec.markMask = mark.mask;
    spec.table = table;
    spec.inverted = inverted;
    return spec;
  }
  std::vector<MarkMatch> marks() const {
    std::optional<DroppedTunnels> found = tunnelsDroppedBy(config, rules);
    return found ? found->marks : std::vector<MarkMatch>();
  }

  Config config;
  std::vector<FoundRule> rules;
};

TEST_F(OtherTunnelsTest, RulesOfWgQuickAndTailscaleShowTheirMarks) {
  EXPECT_THAT(marks(), IsEmpty());
  rule(32764, {0, UINT32_MAX}, RT_TABLE_MAIN).suppressPrefixLength = 0;
  rule(32765, {0xca6c, UINT32_MAX}, 51820, true);
  EXPECT_THAT(marks(), ElementsAre(MarkMatch{0xca6c, UINT32_MAX}));
  rule(5210, {0x80000, 0xff0000}, RT_TABLE_MAIN);
  rule(5230, {0x80000, 0xff0000}, RT_TABLE_DEFAULT);
  rule(5270, {0, UINT32_MAX}, 52);
  EXPECT_THAT(marks(), ElementsAre(MarkMatch{0xca6c, UINT32_MAX}, MarkMatch{0x80000, 0xff0000}));
  std::optional<DroppedTunnels> found = tunnelsDroppedBy(config, rules);
  EXPECT_EQ(found->what,
            "IPv4 rule 32765: not fwmark 0xca6c lookup 51820, IPv4 rule 5210: fwmark "
            "0x80000/0xff0000 lookup 254: by 0xca6c, 0x80000/0xff0000 another tunnel of this host "
            "knows the packets that carry it");
  config.device.bypassMarks = {{0xca6c, UINT32_MAX}};
  found = tunnelsDroppedBy(config, rules);
  ASSERT_TRUE(found);
  EXPECT_THAT(found->marks, ElementsAre(MarkMatch{0x80000, 0xff0000}));
  EXPECT_THAT(found->remedy, HasSubstr("add 'bypass-marks: [0xca6c, 0x80000/0xff0000]' to device"));
  config.device.bypassMarks.push_back({0x80000, 0xff0000});
  EXPECT_FALSE(tunnelsDroppedBy(config, rules));
}

TEST_F(OtherTunnelsTest, WhatIsNotGuardedIsNotCut) {
  rule(5210, {0x80000, 0xff0000}, RT_TABLE_MAIN);
  config.device.routes = {*Prefix::parse("10.0.0.0/8")};
  EXPECT_THAT(marks(), IsEmpty());
  config.device.routes = {*Prefix::parse("2000::/3")};
  EXPECT_EQ(marks().size(), 1u);
  for (auto other : {DeviceConfig::WhenDown::kUnset, DeviceConfig::WhenDown::kDirect}) {
    config.device.whenDown = other;
    EXPECT_THAT(marks(), IsEmpty());
  }
}

TEST_F(OtherTunnelsTest, RulesForOtherPurposesShowNone) {
  rule(1, {0x100, 0x3f00}, 7);                       // mwan3: by an uplink
  rule(2, {1, UINT32_MAX}, 100);                     // a transparent proxy
  rule(3, {0x20, UINT32_MAX}, RT_TABLE_MAIN, true);  // all others by the host's own routes
  rule(4, {9, UINT32_MAX}, RT_TABLE_MAIN).suppressPrefixLength = 0;
  rule(5, {9, UINT32_MAX}, RT_TABLE_MAIN).localOnly = true;
  rule(6, {9, UINT32_MAX}, RT_TABLE_MAIN).from = *Prefix::parse("10.0.0.0/8");
  rule(7, {9, UINT32_MAX}, RT_TABLE_MAIN).outInterface = "eth0";
  rule(8, {9, UINT32_MAX}, RT_TABLE_MAIN).protocol = 17;
  rule(9, {9, UINT32_MAX}, RT_TABLE_MAIN).sourcePort = 53;
  rule(10, {9, UINT32_MAX}, RT_TABLE_MAIN).destinationPort = 53;
  rule(11, {9, UINT32_MAX}, RT_TABLE_MAIN);
  rules.back().isWhole = false;
  EXPECT_THAT(marks(), IsEmpty());
}

TEST_F(OtherTunnelsTest, BraidsOwnRulesShowNoneAndThoseOfAGatewayWithOtherMarksDo) {
  HostNumbers own = numbersOf(config), others = own;
  others.markMask = 0xff0000;
  for (const HostNumbers& numbers : {own, others}) {
    rule(numbers.passRule(), {numbers.outsideMark(), numbers.outsideMask()}, RT_TABLE_MAIN);
    rule(numbers.tunnelRule(true), {numbers.outsideMark(), numbers.outsideMask()},
         numbers.tunnelTable(), true);
    rule(numbers.interceptedRule(), {numbers.interceptedMark(), numbers.markMask},
         numbers.interceptedTable());
  }
  EXPECT_THAT(marks(), ElementsAre(MarkMatch{0x400000, 0xe00000}));
}

TEST_F(OtherTunnelsTest, NoMoreAreNamedThanTheConfigurationMayHave) {
  for (uint32_t i = 1; i <= 2 * kMaxBypassMarks; ++i) rule(i, {i << 8, UINT32_MAX}, RT_TABLE_MAIN);
  EXPECT_EQ(marks().size(), kMaxBypassMarks);
}

TEST_F(OtherTunnelsTest, DoctorNamesKeyAndValue) {
  auto report = [&] {
    DoctorReport out;
    Patient patient{config, nullptr, Machine(), {}, {}};
    patient.rules = rules;
    checkOtherTunnels(patient, out);
    return out.toText();
  };
  EXPECT_THAT(report(), HasSubstr("fine     other-tunnels: no rule of this host"));
  rule(5210, {0x80000, 0xff0000}, RT_TABLE_MAIN);
  EXPECT_THAT(report(),
              AllOf(HasSubstr("WRONG    other-tunnels: IPv4 rule 5210: fwmark 0x80000/0xff0000"),
                    HasSubstr("the guard (device.when-down: block) drops them"),
                    HasSubstr("Remedy: add 'bypass-marks: [0x80000/0xff0000]' to device")));
  config.device.whenDown = DeviceConfig::WhenDown::kUnset;
  EXPECT_EQ(report(), "nothing wrong was found\n");
}

// What the kernel tells of a rule; attributes that RuleSpec does not hold make it a rule with
// further conditions.
TEST(FoundRules, TheirFurtherConditionsAreSeen) {
  RuleSpec spec;
  spec.mark = 0x80000;
  spec.markMask = 0xff0000;
  auto parsed = [&](auto&& change) {
    NetlinkRequest request = ruleRequest(RTM_NEWRULE, spec);
    change(request, *static_cast<fib_rule_hdr*>(mnl_nlmsg_get_payload(&request.header())));
    std::optional<FoundRule> found = parseRule(request.header());
    EXPECT_TRUE(found);
    EXPECT_EQ(found->spec.mark, 0x80000u);
    return found->isWhole;
  };
  EXPECT_TRUE(parsed([](auto&, auto&) {}));
  EXPECT_FALSE(parsed([](auto&, fib_rule_hdr& rule) { rule.action = FR_ACT_UNREACHABLE; }));
  EXPECT_FALSE(parsed([](auto&, fib_rule_hdr& rule) { rule.dst_len = 8; }));
  EXPECT_FALSE(parsed([](auto&, fib_rule_hdr& rule) { rule.tos = 16; }));
  EXPECT_FALSE(parsed([](auto& request, auto&) { request.put(FRA_IIFNAME, std::string("eth0")); }));
  EXPECT_TRUE(parsed([](auto& request, auto&) { request.put(FRA_IIFNAME, std::string("lo")); }));
  EXPECT_FALSE(parsed([](auto& request, auto&) { request.put(FRA_L3MDEV, uint8_t{1}); }));
  EXPECT_FALSE(parsed([](auto& request, auto&) {
    fib_rule_uid_range range{1000, 1000};
    mnl_attr_put(&request.header(), FRA_UID_RANGE, sizeof range, &range);
  }));
}

}  // namespace
}  // namespace braid::other_tunnels_test
