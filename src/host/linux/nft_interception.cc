#include "host/linux/nft_interception.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#include "host/linux/nft_parts.h"

namespace braid {

namespace {

constexpr const char* kFirst = "prerouting";  // the chain that the kernel calls
constexpr const char* kNew = "new";           // of packets that begin a connection
constexpr const char* kOpen = "open";  // of packets of connections that are there; called by the kernel
constexpr const char* kSets[] = {"destinations4", "destinations6"};
// New connections before addresses are translated, so that ports which the host forwards (DNAT) are left alone:
// NF_IP_PRI_MANGLE, where tables that mark stand.
constexpr int32_t kNewPriority = -150;
// Packets of connections that are there after that (NF_IP_PRI_NAT_DST is -100), when answers to a masqueraded connection
// have their own destination again. Both before the routing decision, which looks at the mark.
constexpr int32_t kOpenPriority = -90;
constexpr uint8_t kFin = 0x01, kSyn = 0x02, kRst = 0x04, kAck = 0x10;  // RFC 9293 section 3.1
constexpr uint8_t kLoopback4[] = {127, 0, 0, 1};
constexpr uint8_t kLoopback6[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};

// The destination and port of a rule of the configuration; `v6`: of a rule without a network.
void narrow(NftRule& rule, const StreamRule& wanted, bool v6) {
  if (wanted.network) {
    rule.destinationIn(wanted.network->address.view(), wanted.network->length);
  } else {
    rule.familyIs(v6 ? NFPROTO_IPV6 : NFPROTO_IPV4);
  }
  rule.portsAre(wanted.firstPort, wanted.lastPort);
}

bool concerns(const StreamRule& rule, bool v6) {
  return !rule.network || rule.network->address.isV6() == v6;
}

void putNew(NftBatch& batch, const std::string& table, const Interception& what, bool v6, uint16_t port) {
  for (const StreamRule& r : what.exclude) {
    if (!concerns(r, v6)) continue;
    NftRule rule(batch, table, kNew);
    narrow(rule, r, v6);
    rule.verdict(NFT_RETURN);
  }
  for (const StreamPair& pair : what.avoid) {
    if (pair.destination.isV6() != v6) continue;
    NftRule(batch, table, kNew)
        .sourceIn(pair.source.view(), pair.source.bits())
        .destinationIn(pair.destination.view(), pair.destination.bits())
        .verdict(NFT_RETURN);
  }
  for (const StreamRule& r : what.match) {
    if (!concerns(r, v6)) continue;
    NftRule rule(batch, table, kNew);
    narrow(rule, r, v6);
    ByteView loopback = v6 ? ByteView(kLoopback6) : ByteView(kLoopback4);
    rule.destinationInSet(kSets[v6], v6).routedTo(what.device).proxyTo(loopback, port);
    rule.setMark(what.mark).verdict(NF_ACCEPT);
  }
}

}  // namespace

void putInterception(NftBatch& batch, const std::string& table, const Interception& what, bool takeNew,
                     uint16_t portV4, uint16_t portV6) {
  NftHook first{NF_INET_PRE_ROUTING, kNewPriority, "filter"},
      open{NF_INET_PRE_ROUTING, kOpenPriority, "filter"};
  putChain(batch, table, kNew, nullptr);
  putChain(batch, table, kFirst, &first);
  putChain(batch, table, kOpen, &open);
  putAddressSet(batch, table, kSets[0], 1, false, what.destinations);
  putAddressSet(batch, table, kSets[1], 2, true, what.destinations);
  NftRule(batch, table, kFirst).interfaceIs(what.device).verdict(NFT_RETURN);
  NftRule(batch, table, kFirst)
      .protocolIs(IPPROTO_TCP)
      .tcpFlagsAre(kFin | kSyn | kRst | kAck, kSyn)
      .verdict(NFT_JUMP, kNew);
  // From the device, too: a stream's destination may lie behind another peer, and its answers come from there. ICMP
  // errors find the socket that they are about: a destination that cannot be reached is told at once.
  for (int protocol : {int{IPPROTO_TCP}, int{IPPROTO_ICMP}, int{IPPROTO_ICMPV6}}) {
    NftRule rule(batch, table, kOpen);
    rule.protocolIs(static_cast<uint8_t>(protocol))
        .hasTransparentSocket()
        .setMark(what.mark)
        .verdict(NF_ACCEPT);
  }
  if (!takeNew) return;
  for (const std::string& interface : what.outside)
    NftRule(batch, table, kNew).interfaceIs(interface).verdict(NFT_RETURN);
  putNew(batch, table, what, false, portV4);
  putNew(batch, table, what, true, portV6);
}

}  // namespace braid
