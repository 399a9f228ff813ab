// Rules in the words of ufw, iptables, nft and firewalld.

#include "ctl/firewall/firewall_program.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/netfilter.h>

namespace braid::firewall_program_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

PassRule fromLan() {
  PassRule rule;
  rule.in = "lan0";
  rule.out = "braid0";
  rule.source = *Prefix::parse("192.168.1.0/24");
  return rule;
}

PassRule toLan() {
  PassRule rule;
  rule.family = Address::Family::kV6;
  rule.in = "braid0";
  rule.out = "lan0";
  rule.destination = *Prefix::parse("fd01::/64");
  return rule;
}

PassRule port(uint16_t first, uint16_t last) {
  PassRule rule;
  rule.hook = NftPacket::Hook::kInput;
  rule.protocol = IPPROTO_UDP;
  rule.firstPort = first;
  rule.lastPort = last;
  return rule;
}

PassRule streams() {
  PassRule rule;
  rule.hook = NftPacket::Hook::kInput;
  rule.in = "lan0";
  rule.source = *Prefix::parse("192.168.1.0/24");
  rule.protocol = IPPROTO_TCP;
  rule.mark = 0x42000000;
  rule.markMask = 0xff000000;
  return rule;
}

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
  return out;
}

TEST(FirewallWords, OfUfw) {
  EXPECT_EQ(joined(ufwWords(fromLan())), "allow in on lan0 out on braid0 from 192.168.1.0/24");
  EXPECT_EQ(joined(ufwWords(toLan())), "allow in on braid0 out on lan0 to fd01::/64");
  EXPECT_EQ(joined(ufwWords(port(4433, 4433))), "allow 4433/udp");
  PassRule forward = toLan();
  forward.protocol = IPPROTO_TCP;
  forward.firstPort = 80;
  forward.lastPort = 89;
  EXPECT_EQ(joined(ufwWords(forward)),
            "allow in on braid0 out on lan0 to fd01::/64 port 80:89 proto tcp");
}

TEST(FirewallWords, OfIptables) {
  EXPECT_EQ(joined(iptablesWords(fromLan(), "braid edge")),
            "-i lan0 -o braid0 -s 192.168.1.0/24 -m comment --comment braid edge -j ACCEPT");
  EXPECT_EQ(joined(iptablesWords(port(4433, 4434), "")), "-p udp --dport 4433:4434 -j ACCEPT");
  EXPECT_EQ(joined(iptablesWords(streams(), "")),
            "-i lan0 -s 192.168.1.0/24 -p tcp -m mark --mark 0x42000000/0xff000000 -j ACCEPT");
  PassRule answers = toLan();
  answers.isForAnswers = true;
  EXPECT_EQ(joined(iptablesWords(answers, "")),
            "-i braid0 -o lan0 -d fd01::/64 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT");
}

TEST(FirewallWords, OfNft) {
  EXPECT_EQ(
      joined(nftWords(fromLan(), "braid edge")),
      R"(iifname "lan0" oifname "braid0" ip saddr 192.168.1.0/24 accept comment "braid edge")");
  EXPECT_EQ(joined(nftWords(port(4433, 4433), "")), "udp dport 4433 accept");
  EXPECT_EQ(joined(nftWords(streams(), "")),
            R"(iifname "lan0" ip saddr 192.168.1.0/24 meta l4proto tcp meta mark & 0xff000000 == )"
            "0x42000000 accept");
  PassRule nat = fromLan();
  nat.source.reset();
  EXPECT_EQ(joined(nftWords(nat, "")),
            R"(iifname "lan0" oifname "braid0" meta nfproto ipv4 accept)")
      << "of one family, as everything that `allow` opens";
  EXPECT_EQ(joined(nftWords(nat, "", false)), R"(iifname "lan0" oifname "braid0" accept)")
      << "nft takes no other word in a table of one family";
}

TEST(FirewallWords, OfFirewalld) {
  EXPECT_EQ(richRule(fromLan()), R"(rule family="ipv4" source address="192.168.1.0/24" accept)");
  EXPECT_EQ(richRule(toLan()), R"(rule family="ipv6" destination address="fd01::/64" accept)");
}

Obstacle obstacle(Opening::Kind kind, const PassRule& rule, const std::string& chain,
                  const std::string& within = "") {
  uint8_t family = rule.family == Address::Family::kV4 ? NFPROTO_IPV4 : NFPROTO_IPV6;
  NftPacket sample;
  sample.in = rule.in;
  return {{kind, rule, {sample}}, {family, "filter", chain, within, within.empty()}, 443};
}

std::string textOf(const std::vector<FirewallStep>& steps) {
  std::string out;
  for (const FirewallStep& step : steps) out += toText(step);
  return out;
}

TEST(FirewallSteps, UfwHasRoutesAndLinesOfItsFileOfEarlyRules) {
  std::vector<FirewallStep> steps =
      stepsFor(FirewallProgram::kUfw,
               {obstacle(Opening::Kind::kOut, fromLan(), "FORWARD"),
                obstacle(Opening::Kind::kOut, fromLan(), "FORWARD"),
                obstacle(Opening::Kind::kStreams, streams(), "INPUT", "ufw-not-local")},
               {"edge", "braid0", false});
  ASSERT_EQ(steps.size(), 2u) << "each once";
  EXPECT_EQ(shellText(steps[0].run),
            "ufw route allow in on lan0 out on braid0 from 192.168.1.0/24 comment 'braid edge'");
  EXPECT_EQ(shellText(steps[0].undo),
            "ufw route delete allow in on lan0 out on braid0 from 192.168.1.0/24");
  EXPECT_EQ(steps[1].file, "/etc/ufw/before.rules");
  EXPECT_EQ(steps[1].before, "-A ufw-before-input");
  EXPECT_EQ(steps[1].text,
            "-A ufw-before-input -i lan0 -s 192.168.1.0/24 -p tcp -m mark --mark "
            "0x42000000/0xff000000 -j ACCEPT\n");
  EXPECT_THAT(steps[1].finish, ElementsAre("ufw", "reload"));
}

TEST(FirewallSteps, DockersAreMadeAgainAtTheMachinesStart) {
  std::vector<Obstacle> all{obstacle(Opening::Kind::kOut, fromLan(), "FORWARD")};
  std::string now = textOf(stepsFor(FirewallProgram::kDocker, all, {"edge", "braid0", false}));
  EXPECT_EQ(now,
            "iptables -w -I DOCKER-USER -i lan0 -o braid0 -s 192.168.1.0/24 -m comment --comment "
            "'braid edge' -j ACCEPT\n");
  std::vector<FirewallStep> steps =
      stepsFor(FirewallProgram::kDocker, all, {"edge", "braid0", true});
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[1].file, "/etc/systemd/system/docker.service.d/braid-edge.conf");
  EXPECT_THAT(steps[1].text,
              HasSubstr("ExecStartPost=-/bin/sh -c 'iptables -w -C DOCKER-USER -i lan0 -o braid0 "
                        "-s 192.168.1.0/24 -m comment --comment \"braid edge\" -j ACCEPT "
                        "2>/dev/null || iptables -w -I DOCKER-USER"));
}

TEST(FirewallSteps, LibvirtsAreMadeAgainByItsHook) {
  std::vector<FirewallStep> steps = stepsFor(
      FirewallProgram::kLibvirt, {obstacle(Opening::Kind::kIn, toLan(), "FORWARD", "LIBVIRT_FWI")},
      {"edge", "braid0", true});
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_THAT(shellText(steps[0].run), HasSubstr("ip6tables -w -I FORWARD -i braid0 -o lan0"));
  EXPECT_EQ(steps[1].file, "/etc/libvirt/hooks/network.d/braid-edge");
  EXPECT_TRUE(steps[1].isProgram);
  EXPECT_THAT(steps[1].text, HasSubstr("[ \"$2\" = started ] || exit 0\nip6tables -w -C FORWARD"));
}

TEST(FirewallSteps, LibvirtsOwnTableGetsThemFromTheHookToo) {
  std::vector<Obstacle> all;
  for (const char* out : {"virbr0", "virbr1"}) {
    PassRule rule = toLan();
    rule.out = out;
    Obstacle& each = all.emplace_back(obstacle(Opening::Kind::kIn, rule, "forward", "guest_input"));
    each.drop.table = "libvirt_network";
    each.drop.family = NFPROTO_IPV6;
  }
  std::vector<FirewallStep> steps =
      stepsFor(FirewallProgram::kLibvirt, all, {"edge", "braid0", true});
  ASSERT_EQ(steps.size(), 3u);
  std::string insert[2];
  for (size_t i : {0u, 1u}) {
    insert[i] = shellText(steps[i].run);
    EXPECT_THAT(insert[i], HasSubstr("nft insert rule ip6 libvirt_network forward iifname"));
    EXPECT_THAT(steps[i].undoChain, ElementsAre("ip6", "libvirt_network", "forward"));
  }
  EXPECT_EQ(
      steps[2].text,
      "#!/bin/sh\n[ \"$2\" = started ] || exit 0\n"
      "nft list chain ip6 libvirt_network forward | grep -qF 'comment \"braid edge\"' || {\n  " +
          insert[0] + "\n  " + insert[1] + "\n}\n");
}

TEST(FirewallSteps, OfNobodyGoIntoTheChainThatDrops) {
  Obstacle each = obstacle(Opening::Kind::kOut, fromLan(), "forward");
  each.drop.family = NFPROTO_INET;
  std::vector<FirewallStep> steps =
      stepsFor(FirewallProgram::kNft, {each}, {"edge", "braid0", false});
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(shellText(steps[0].run),
            "nft insert rule inet filter forward iifname '\"lan0\"' oifname '\"braid0\"' ip saddr "
            "192.168.1.0/24 accept comment '\"braid edge\"'");
  EXPECT_THAT(steps[0].undo, IsEmpty());
  EXPECT_EQ(steps[0].undoComment, "braid edge");
  EXPECT_THAT(steps[0].undoChain, ElementsAre("inet", "filter", "forward"));
}

TEST(FirewallProgram, FirewalldCannotTellStreamsFromConnectionsToTheHost) {
  Opening taken{Opening::Kind::kStreams, streams(), {}}, passed{Opening::Kind::kOut, fromLan(), {}};
  EXPECT_FALSE(canOpen(FirewallProgram::kFirewalld, taken));
  EXPECT_TRUE(canOpen(FirewallProgram::kFirewalld, passed));
  EXPECT_TRUE(canOpen(FirewallProgram::kUfw, taken));
}

}  // namespace
}  // namespace braid::firewall_program_test
