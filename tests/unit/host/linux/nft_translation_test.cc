// The netlink messages to the kernel for the rules of `nat` and `forwards`.

#include "host/linux/nft_rules.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>

#include <cstring>
#include <string>
#include <vector>

#include "host/linux/netlink.h"
#include "inet/ip.h"

namespace braid::nft_translation_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::string hex(const nlattr* a) {
  std::string out;
  const auto* bytes = static_cast<const uint8_t*>(mnl_attr_get_payload(a));
  for (size_t i = 0; i < mnl_attr_get_payload_len(a); ++i) {
    constexpr char kDigits[] = "0123456789abcdef";
    out += kDigits[bytes[i] >> 4];
    out += kDigits[bytes[i] & 15];
  }
  return out;
}

template <typename F>
void forEachWithin(const nlattr* nest, F&& visit) {
  const auto* a = static_cast<const nlattr*>(mnl_attr_get_payload(nest));
  const char* end =
      static_cast<const char*>(mnl_attr_get_payload(nest)) + mnl_attr_get_payload_len(nest);
  for (; mnl_attr_ok(a, static_cast<int>(end - reinterpret_cast<const char*>(a)));
       a = mnl_attr_next(a))
    visit(a);
}

const nlattr* within(const nlattr* nest, uint16_t type) {
  const nlattr* found = nullptr;
  forEachWithin(nest, [&](const nlattr* a) {
    if (!found && mnl_attr_get_type(a) == type) found = a;
  });
  return found;
}

std::string value(const nlattr* data, uint16_t type) {
  const nlattr* at = within(data, type);
  const nlattr* bytes = at ? within(at, NFTA_DATA_VALUE) : nullptr;
  if (!bytes) return "";
  std::string text = hex(bytes);
  // Names of interfaces are padded to 16 bytes: as text.
  if (mnl_attr_get_payload_len(bytes) == 16) {
    std::string name(static_cast<const char*>(mnl_attr_get_payload(bytes)));
    if (name.empty() || name == "braid0") return "'" + name + "'";
  }
  return text;
}

uint32_t number(const nlattr* data, uint16_t type) {
  const nlattr* at = within(data, type);
  return at ? ntohl(mnl_attr_get_u32(at)) : 0;
}

std::string expression(const nlattr* element) {
  std::string name = mnl_attr_get_str(within(element, NFTA_EXPR_NAME));
  const nlattr* data = within(element, NFTA_EXPR_DATA);
  if (name == "cmp") {
    const char* ops[] = {"==", "!=", "<", "<=", ">", ">="};
    return ops[number(data, NFTA_CMP_OP)] + (" " + value(data, NFTA_CMP_DATA));
  }
  if (name == "meta") return "meta" + std::to_string(number(data, NFTA_META_KEY));
  if (name == "payload")
    return "at" + std::to_string(number(data, NFTA_PAYLOAD_BASE)) + "+" +
           std::to_string(number(data, NFTA_PAYLOAD_OFFSET));
  if (name == "lookup") return std::string("in ") + mnl_attr_get_str(within(data, NFTA_LOOKUP_SET));
  if (name == "bitwise") return "& " + value(data, NFTA_BITWISE_MASK);
  if (name == "fib") return "fib" + std::to_string(number(data, NFTA_FIB_FLAGS));
  if (name == "ct") return "ct" + std::to_string(number(data, NFTA_CT_KEY));
  if (name == "nat") {
    std::string out = number(data, NFTA_NAT_TYPE) == NFT_NAT_DNAT ? "dnat" : "snat";
    return out + (within(data, NFTA_NAT_REG_PROTO_MIN) ? " with port" : "");
  }
  if (name == "immediate") {
    std::string bytes = value(data, NFTA_IMMEDIATE_DATA);
    if (!bytes.empty()) return "load " + bytes;
    const nlattr* verdict = within(within(data, NFTA_IMMEDIATE_DATA), NFTA_DATA_VERDICT);
    return "verdict " + std::to_string(static_cast<int32_t>(number(verdict, NFTA_VERDICT_CODE)));
  }
  return name;
}

/// The rules of a chain, each as its expressions.
std::vector<std::string> rulesOf(const Translation& what, const std::string& chain) {
  NftBatch batch;
  putTranslation(batch, "t", what);
  batch.end();
  // Aligned for messages.
  std::vector<uint32_t> room(batch.bytes().size() / 4 + 1);
  std::memcpy(room.data(), batch.bytes().data(), batch.bytes().size());
  std::vector<std::string> out;
  forEachMessage({reinterpret_cast<const uint8_t*>(room.data()), batch.bytes().size()},
                 [&](const nlmsghdr& m) {
                   if (m.nlmsg_type != (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE)) return;
                   std::string of, text;
                   forEachAttribute(m, sizeof(nfgenmsg), [&](const nlattr* a) {
                     if (mnl_attr_get_type(a) == NFTA_RULE_CHAIN) of = mnl_attr_get_str(a);
                     if (mnl_attr_get_type(a) != NFTA_RULE_EXPRESSIONS) return;
                     forEachWithin(a, [&](const nlattr* element) {
                       text += (text.empty() ? "" : "; ") + expression(element);
                     });
                   });
                   if (of == chain) out.push_back(text);
                 });
  return out;
}

Address address(const char* text) {
  return *Address::parse(text);
}

// From linux/netfilter/nf_tables.h: meta 6 is the input interface of a packet, 7 its output
// interface, 15 its family, 16 its protocol. at1+12 and at1+8 are the sources of IPv4 and IPv6,
// at2+2 is the destination port. fib 1 looks up the source, 2 the destination, 10 the destination
// at the input interface; type 02000000 means this host's address. ct 2 is the state; & 20000000
// says that the destination was changed. The verdict -5 is "return".

TEST(NftTranslation, WhatComesFromTheTunnelIsMasqueradedOutOfOtherInterfacesOnly) {
  Translation what{.device = "braid0",
                   .masqueradeV4 = true,
                   .masqueradeV6 = true,
                   .sources = {},
                   .forwards = {}};
  EXPECT_THAT(rulesOf(what, "prerouting"), IsEmpty());
  EXPECT_THAT(
      rulesOf(what, "postrouting"),
      ElementsAre("meta7; == 'braid0'; verdict -5",
                  "meta15; == 02; meta6; == 'braid0'; at1+12; in sources4; masq",
                  "meta15; == 02; meta6; == ''; at1+12; in sources4; fib1; != 02000000; masq",
                  "meta15; == 0a; meta6; == 'braid0'; at1+8; in sources6; masq",
                  "meta15; == 0a; meta6; == ''; at1+8; in sources6; fib1; != 02000000; masq"));
}

TEST(NftTranslation, Ipv6IsLeftAloneWhenIpv4IsMeant) {
  Translation what{.device = "braid0",
                   .masqueradeV4 = true,
                   .masqueradeV6 = false,
                   .sources = {},
                   .forwards = {}};
  for (const std::string& rule : rulesOf(what, "postrouting"))
    EXPECT_EQ(rule.find("sources6"), std::string::npos);
}

TEST(NftTranslation, APortOfThisHostLeadsToAnotherOne) {
  Translation what{.device = "braid0",
                   .masqueradeV4 = false,
                   .masqueradeV6 = false,
                   .sources = {},
                   .forwards = {}};
  what.forwards.push_back({ip::kTcp, 8080, 8080, address("10.1.0.9"), 80, {}, false});
  what.forwards.push_back(
      {ip::kUdp, 5000, 5010, address("fd00::9"), 0, {*Prefix::parse("fd77::/16")}, false});
  EXPECT_THAT(
      rulesOf(what, "prerouting"),
      ElementsAre(
          "meta15; == 02; meta6; != 'braid0'; meta16; == 06; at2+2; == 1f90; fib2; == 02000000; "
          "load 0a010009; load 0050; dnat with port",
          "meta15; == 02; meta6; == 'braid0'; meta16; == 06; at2+2; == 1f90; fib2; == 02000000; "
          "fib10; != 02000000; load 0a010009; load 0050; dnat with port",
          "meta15; == 0a; meta6; != 'braid0'; meta16; == 11; at2+2; >= 1388; <= 1392; fib2; == "
          "02000000; meta15; == 0a; at1+8; & ffff0000000000000000000000000000; == "
          "fd770000000000000000000000000000; load fd000000000000000000000000000009; dnat",
          "meta15; == 0a; meta6; == 'braid0'; meta16; == 11; at2+2; >= 1388; <= 1392; fib2; == "
          "02000000; fib10; != 02000000; meta15; == 0a; at1+8; & ffff0000000000000000000000000000; "
          "== fd770000000000000000000000000000; load fd000000000000000000000000000009; dnat"));
  EXPECT_THAT(
      rulesOf(what, "postrouting"),
      ElementsAre("meta6; == 'braid0'; meta7; == 'braid0'; ct2; & 20000000; != 00000000; masq",
                  "meta7; == 'braid0'; verdict -5"))
      << "from one host behind a peer to another, and none else";
}

TEST(NftTranslation, EachNetworkOfFromHasARule) {
  Translation what{.device = "braid0",
                   .masqueradeV4 = false,
                   .masqueradeV6 = false,
                   .sources = {},
                   .forwards = {}};
  what.forwards.push_back({ip::kTcp,
                           80,
                           80,
                           address("10.1.0.9"),
                           0,
                           {*Prefix::parse("198.51.100.0/24"), *Prefix::parse("203.0.113.7")},
                           false});
  EXPECT_EQ(rulesOf(what, "prerouting").size(), 4u);
}

TEST(NftTranslation, TheOtherHostMaySeeThisOneInPlaceOfTheSource) {
  Translation what{.device = "braid0",
                   .masqueradeV4 = false,
                   .masqueradeV6 = false,
                   .sources = {},
                   .forwards = {}};
  what.forwards.push_back({ip::kTcp, 8080, 8080, address("10.1.0.9"), 80, {}, true});
  EXPECT_THAT(
      rulesOf(what, "postrouting"),
      ElementsAre("meta7; == 'braid0'; meta15; == 02; at1+16; & ffffffff; == 0a010009; "
                  "meta16; == 06; at2+2; "
                  "== 0050; ct2; & 20000000; != 00000000; masq",
                  "meta6; == 'braid0'; meta7; == 'braid0'; ct2; & 20000000; != 00000000; masq",
                  "meta7; == 'braid0'; verdict -5"));
}

// ct 3 is the connection's mark: nothing else has marked it, and then it gets the value.
TEST(NftTranslation, ConnectionsIntoTheTunnelAreMarkedWhereSomeGoPastIt) {
  Translation what{.device = "braid0",
                   .masqueradeV4 = false,
                   .masqueradeV6 = false,
                   .sources = {},
                   .forwards = {},
                   .uplinks = {"braid0"},
                   .direct = {{address("0.0.0.0"), address("255.255.255.255")}},
                   .tunnelledMark = 0x20,
                   .markMask = 0xff};
  std::vector<std::string> rules = rulesOf(what, "postrouting");
  ASSERT_GE(rules.size(), 2u);
  EXPECT_THAT(rules[0], testing::StartsWith("meta7; == 'braid0'; ct3;"));
  EXPECT_EQ(rules[1], "meta7; == 'braid0'; verdict -5");
}

}  // namespace
}  // namespace braid::nft_translation_test
