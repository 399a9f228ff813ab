// Matches of iptables, as iptables-nft hands them to the kernel.

#include "host/linux/xt_match.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/netfilter/xt_addrtype.h>
#include <linux/netfilter/xt_conntrack.h>
#include <linux/netfilter/xt_mark.h>
#include <linux/netfilter/xt_multiport.h>
#include <linux/netfilter/xt_state.h>
#include <linux/netfilter/xt_tcpudp.h>

#include <cstring>

namespace braid::xt_match_test {
namespace {

NftPacket syn(uint16_t port) {
  NftPacket out;
  out.protocol = IPPROTO_TCP;
  out.port = port;
  return out;
}

template <typename Info>
NftAnswer ask(const char* name, uint32_t revision, const Info& info, const NftPacket& packet) {
  uint8_t bytes[sizeof info];
  std::memcpy(bytes, &info, sizeof info);
  return xtMatch(name, revision, bytes, packet);
}

TEST(XtMatch, Ports) {
  xt_tcp tcp{};
  tcp.spts[1] = 0xffff;
  tcp.dpts[0] = 80;
  tcp.dpts[1] = 89;
  EXPECT_EQ(ask("tcp", 0, tcp, syn(80)), NftAnswer::kYes);
  EXPECT_EQ(ask("tcp", 0, tcp, syn(90)), NftAnswer::kNo);
  tcp.invflags = XT_TCP_INV_DSTPT;
  EXPECT_EQ(ask("tcp", 0, tcp, syn(90)), NftAnswer::kYes);
  tcp.spts[0] = 1024;
  EXPECT_EQ(ask("tcp", 0, tcp, syn(90)), NftAnswer::kMaybe) << "the source port is not known";
  xt_multiport_v1 many{};
  many.flags = XT_MULTIPORT_DESTINATION;
  many.count = 3;
  many.ports[0] = 22;
  many.ports[1] = 80;
  many.pflags[1] = 1;
  many.ports[2] = 443;
  for (auto [port, meant] :
       {std::pair{22, true}, {23, false}, {80, true}, {200, true}, {444, false}})
    EXPECT_EQ(ask("multiport", 1, many, syn(static_cast<uint16_t>(port))),
              meant ? NftAnswer::kYes : NftAnswer::kNo)
        << port;
}

TEST(XtMatch, FlagsOfTcp) {
  xt_tcp tcp{};
  tcp.spts[1] = tcp.dpts[1] = 0xffff;
  tcp.flg_mask = 0x17;
  tcp.flg_cmp = 0x02;  // --syn
  NftPacket packet = syn(80);
  EXPECT_EQ(ask("tcp", 0, tcp, packet), NftAnswer::kYes);
  packet.isAnswer = true;
  EXPECT_EQ(ask("tcp", 0, tcp, packet), NftAnswer::kNo);
  packet.protocol = IPPROTO_UDP;
  EXPECT_EQ(ask("tcp", 0, tcp, packet), NftAnswer::kNo);
}

TEST(XtMatch, StateOfTheConnection) {
  xt_conntrack_mtinfo3 info{};
  info.match_flags = XT_CONNTRACK_STATE;
  info.state_mask =
      XT_CONNTRACK_STATE_BIT(IP_CT_ESTABLISHED) | XT_CONNTRACK_STATE_BIT(IP_CT_RELATED);
  NftPacket packet = syn(80);
  EXPECT_EQ(ask("conntrack", 3, info, packet), NftAnswer::kNo);
  packet.isAnswer = true;
  EXPECT_EQ(ask("conntrack", 3, info, packet), NftAnswer::kYes);
  info.invert_flags = XT_CONNTRACK_STATE;
  EXPECT_EQ(ask("conntrack", 3, info, packet), NftAnswer::kNo);
  info.match_flags |= XT_CONNTRACK_STATUS;
  EXPECT_EQ(ask("conntrack", 3, info, packet), NftAnswer::kMaybe);
  info = {};
  info.match_flags = XT_CONNTRACK_STATE;
  info.state_mask = XT_CONNTRACK_STATE_DNAT;
  packet = syn(80);
  EXPECT_EQ(ask("conntrack", 3, info, packet), NftAnswer::kNo);
  packet.isTranslated = true;
  EXPECT_EQ(ask("conntrack", 3, info, packet), NftAnswer::kYes);
  xt_state_info state{};
  state.statemask = XT_CONNTRACK_STATE_BIT(IP_CT_NEW);
  EXPECT_EQ(ask("state", 0, state, syn(80)), NftAnswer::kYes);
}

// Rules like "drop what is not for this host" (ufw-not-local).
TEST(XtMatch, AddressesOfThisHost) {
  xt_addrtype_info_v1 info{};
  info.dest = XT_ADDRTYPE_LOCAL;
  NftPacket packet = syn(80);
  EXPECT_EQ(ask("addrtype", 1, info, packet), NftAnswer::kYes);
  packet.isForeign = true;
  EXPECT_EQ(ask("addrtype", 1, info, packet), NftAnswer::kNo);
  info.flags = XT_ADDRTYPE_INVERT_DEST;
  EXPECT_EQ(ask("addrtype", 1, info, packet), NftAnswer::kYes);
  packet = syn(80);
  packet.hook = NftPacket::Hook::kForward;
  EXPECT_EQ(ask("addrtype", 1, info, packet), NftAnswer::kYes);
  info.flags |= XT_ADDRTYPE_LIMIT_IFACE_IN;
  EXPECT_EQ(ask("addrtype", 1, info, packet), NftAnswer::kMaybe);
}

TEST(XtMatch, Marks) {
  xt_mark_mtinfo1 info{};
  info.mark = 0x42000000;
  info.mask = 0xff000000;
  NftPacket packet = syn(80);
  EXPECT_EQ(ask("mark", 1, info, packet), NftAnswer::kNo);
  packet.mark = 0x42000007;
  EXPECT_EQ(ask("mark", 1, info, packet), NftAnswer::kYes);
}

TEST(XtMatch, WhatIsUnknownOrCutOffIsNotGuessed) {
  EXPECT_EQ(xtMatch("limit", 0, {}, syn(80)), NftAnswer::kMaybe);
  for (const char* name : {"tcp", "udp", "conntrack", "state", "mark", "addrtype", "multiport"})
    EXPECT_EQ(xtMatch(name, 1, {}, syn(80)), NftAnswer::kMaybe) << name;
  EXPECT_EQ(xtMatch("icmp", 0, {}, syn(80)), NftAnswer::kNo);
  EXPECT_EQ(xtMatch("comment", 0, {}, syn(80)), NftAnswer::kYes);
  EXPECT_EQ(xtTarget("REJECT"), XtTarget::kDrop);
  EXPECT_EQ(xtTarget("LOG"), XtTarget::kContinue);
  EXPECT_EQ(xtTarget("NFQUEUE"), XtTarget::kUnknown);
}

}  // namespace
}  // namespace braid::xt_match_test
