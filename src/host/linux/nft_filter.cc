#include "host/linux/nft_filter.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#include <optional>
#include <utility>

#include "host/linux/netlink.h"
#include "host/linux/nft_rules.h"
#include "host/system.h"

namespace braid {

namespace {

constexpr const char* kIn = "prerouting";
constexpr const char* kOut = "output";
constexpr const char* kLocal = "local";
constexpr const char* kLeaving = "postrouting";
// Jumped to for packets that leave by an uplink, by another gateway's device, and by any interface,
// of which this chain then finds out whether it is new.
constexpr const char *kUplink = "uplink", *kOthers = "gateways", *kNew = "new";
constexpr const char* kGuardedSets[] = {"guarded4", "guarded6"};
constexpr const char* kHereSets[] = {"here4", "here6"};
constexpr const char* kMaybeSets[] = {"maybe4", "maybe6"};
constexpr const char* kOwnSets[] = {"own4", "own6"};
constexpr uint32_t kFirstNearSet = 9;  // the id after those of the sets above
// Before NF_IP_PRI_MANGLE, at which others mark packets and Braid takes connections over, and after
// NF_IP_PRI_CONNTRACK (-200).
constexpr int32_t kMarkPriority = -160;
constexpr int32_t kLocalPriority = -90;  // after NF_IP_PRI_MANGLE and NF_IP_PRI_NAT_DST (-100)
constexpr int32_t kGuardPriority = 0;    // NF_IP_PRI_FILTER

constexpr uint16_t kDhcpClient = 68, kDhcpServer = 67, kDhcp6Client = 546, kDhcp6Server = 547;
// Multicast listeners (RFC 2710, RFC 3810) and neighbour discovery (RFC 4861), which never leave
// the link.
constexpr uint8_t kFirstMld = 130, kLastMld = 132, kMld2 = 143, kFirstNd = 133, kLastNd = 136;
constexpr const char* kLinkOnly[] = {"224.0.0.0/24", "255.255.255.255/32", "fe80::/10",
                                     "ff02::/16"};

NftPurpose purpose() {
  return {"cannot keep replies and guarded packets on their way", "nft_ct and nft_chain_route"};
}

// The kernel looks the route of a packet of this host up again when a chain of type "route" has
// changed its mark.
void putReplies(NftBatch& batch, const std::string& table, const FilterRules& rules) {
  NftHook in{NF_INET_PRE_ROUTING, kMarkPriority, "filter"},
      out{NF_INET_LOCAL_OUT, kMarkPriority, "route"};
  putChain(batch, table, kIn, &in);
  putChain(batch, table, kOut, &out);
  for (const FilterRules::Reply& r : rules.replies) {
    NftRule(batch, table, kIn)
        .interfaceIs(r.interface)
        .isReply(false)
        .connectionMarkIs(0, rules.markMask)
        .setConnectionMark(r.mark, rules.markMask);
  }
  for (const FilterRules::Reply& r : rules.replies) {
    for (const char* chain : {kIn, kOut}) {
      NftRule(batch, table, chain)
          .isReply(true)
          .connectionMarkIs(r.mark, rules.markMask)
          .setMark(r.mark, rules.markMask);
    }
  }
  // The rule for renewals does not see the ports of a client that makes its datagrams itself (a raw
  // socket, as dhcpcd has). Its datagram keeps the source address of the first look-up.
  NftRule(batch, table, kOut)
      .familyIs(NFPROTO_IPV4)
      .protocolIs(IPPROTO_UDP)
      .sourcePortIs(kDhcpClient)
      .portsAre(kDhcpServer, kDhcpServer)
      .setMark(rules.renewal, rules.markMask);
}

// A transparent proxy marks what TPROXY gives it, and has a rule of its own with that mark, which
// may come after the rule into the tunnel. A listener for any address may look like the proxy of
// everything to its port, so a packet that nobody has marked is left alone.
void putLocal(NftBatch& batch, const std::string& table, const FilterRules& rules) {
  NftHook in{NF_INET_PRE_ROUTING, kLocalPriority, "filter"};
  putChain(batch, table, kLocal, &in);
  NftRule(batch, table, kLocal)
      .isMarked()
      .hasTransparentSocket()
      .routedTo(rules.device)
      .setMark(rules.localMark, rules.markMask);
}

// What the host itself needs at its uplinks before there is a tunnel.
void putNeeded(NftBatch& batch, const std::string& table) {
  NftRule(batch, table, kLeaving).icmpv6TypesAre(kFirstMld, kLastMld).verdict(NFT_RETURN);
  NftRule(batch, table, kLeaving).icmpv6TypesAre(kFirstNd, kLastNd).verdict(NFT_RETURN);
  NftRule(batch, table, kLeaving).icmpv6TypesAre(kMld2, kMld2).verdict(NFT_RETURN);
  struct Ports {
    uint16_t from, to;
  };
  for (Ports p : {Ports{kDhcpClient, kDhcpServer}, Ports{kDhcp6Client, kDhcp6Server}}) {
    NftRule rule(batch, table, kLeaving);
    rule.interfaceIs("").protocolIs(IPPROTO_UDP).sourcePortIs(p.from).portsAre(p.to, p.to);
    rule.verdict(NFT_RETURN);
  }
}

// Packets that leave by an interface with a default route. Those to a LAN whose interface is down
// follow such a route, too.
void putOutward(NftBatch& batch, const std::string& table, const FilterRules::Outward& way,
                uint32_t number) {
  const std::string chain = "outward" + std::to_string(number);
  putChain(batch, table, chain, nullptr);
  for (bool v6 : {false, true}) {
    const std::string set = (v6 ? "near6_" : "near4_") + std::to_string(number);
    putAddressSet(batch, table, set, kFirstNearSet + 2 * number + v6, v6, way.here);
    NftRule rule(batch, table, chain);
    rule.familyIs(v6 ? NFPROTO_IPV6 : NFPROTO_IPV4).destinationInSet(set, v6).verdict(NF_ACCEPT);
  }
  NftRule(batch, table, chain).verdict(NFT_JUMP, kUplink);
  NftRule(batch, table, kLeaving).outInterfaceIs(way.interface).verdict(NFT_JUMP, chain);
  NftRule(batch, table, kLeaving).outIndexIs(way.index).verdict(NFT_JUMP, chain);
}

void putGuard(NftBatch& batch, const std::string& table, const FilterRules& rules) {
  NftHook leaving{NF_INET_POST_ROUTING, kGuardPriority, "filter"};
  putChain(batch, table, kUplink, nullptr);
  putChain(batch, table, kOthers, nullptr);
  if (rules.known) putChain(batch, table, kNew, nullptr);
  putChain(batch, table, kLeaving, &leaving);
  for (bool v6 : {false, true}) {
    putAddressSet(batch, table, kGuardedSets[v6], 1 + v6, v6, rules.guarded);
    putAddressSet(batch, table, kHereSets[v6], 3 + v6, v6, rules.here);
    putAddressSet(batch, table, kMaybeSets[v6], 5 + v6, v6, rules.maybeHere);
    putAddressSet(batch, table, kOwnSets[v6], 7 + v6, v6, rules.ownOnly);
  }
  NftRule(batch, table, kLeaving).outInterfaceIs("lo").verdict(NFT_RETURN);
  NftRule(batch, table, kLeaving).outInterfaceIs(rules.device).verdict(NFT_RETURN);
  NftRule(batch, table, kLeaving).markIs(rules.outside, rules.outsideMask).verdict(NFT_RETURN);
  // What a tunnel of the kernel sends (WireGuard) has its device as input interface here, so only
  // the source tells it from what is forwarded; it is not yet translated.
  for (const MarkMatch& mark : rules.bypass) {
    NftRule rule(batch, table, kLeaving);
    rule.markIs(mark.value, mark.mask).sourceIsOfThisHost().verdict(NFT_RETURN);
  }
  putNeeded(batch, table);
  for (const std::string& uplink : rules.uplinks)
    NftRule(batch, table, kLeaving).outInterfaceIs(uplink).verdict(NFT_JUMP, kUplink);
  for (uint32_t uplink : rules.uplinkIndices)
    NftRule(batch, table, kLeaving).outIndexIs(uplink).verdict(NFT_JUMP, kUplink);
  NftRule(batch, table, kLeaving).outGroupIs(kDeviceGroup).verdict(NFT_JUMP, kOthers);
  for (const char* text : kLinkOnly) {
    Prefix network = *Prefix::parse(text);
    NftRule(batch, table, kUplink)
        .interfaceIs("")
        .destinationIn(network.address.view(), network.length)
        .verdict(NF_ACCEPT);
  }
  auto at = [&](const char* chain, const char* const(&sets)[2], int32_t code) {
    for (bool v6 : {false, true}) {
      NftRule rule(batch, table, chain);
      rule.familyIs(v6 ? NFPROTO_IPV6 : NFPROTO_IPV4).destinationInSet(sets[v6], v6).verdict(code);
    }
  };
  at(kUplink, kGuardedSets, NF_DROP);
  at(kOthers, kOwnSets, NF_DROP);
  NftRule(batch, table, kOthers).verdict(NF_ACCEPT);
  if (rules.known) {
    for (const FilterRules::Known& each : *rules.known) {
      NftRule rule(batch, table, kNew);
      rule.outIndexIs(each.index);
      if (!each.name.empty()) rule.outInterfaceIs(each.name);
      rule.verdict(NFT_RETURN);
    }
    NftRule(batch, table, kNew).verdict(NFT_JUMP, kUplink);
  }
  uint32_t number = 0;
  for (const FilterRules::Outward& way : rules.outward) putOutward(batch, table, way, number++);
  at(kLeaving, kHereSets, NFT_RETURN);
  if (rules.known)
    for (bool v6 : {false, true})
      NftRule(batch, table, kLeaving)
          .familyIs(v6 ? NFPROTO_IPV6 : NFPROTO_IPV4)
          .destinationInSet(kGuardedSets[v6], v6)
          .verdict(NFT_JUMP, kNew);
  at(kLeaving, kMaybeSets, NFT_RETURN);
  at(kLeaving, kGuardedSets, NF_DROP);
}

}  // namespace

void putFilter(NftBatch& batch, const std::string& table, const FilterRules& rules) {
  if (!rules.replies.empty()) putReplies(batch, table, rules);
  if (rules.localMark != 0) putLocal(batch, table, rules);
  if (rules.guard) putGuard(batch, table, rules);
}

NftFilter::NftFilter(const std::string& device)
    : table_("braid_routes-" + device, purpose(), NftTable::Found::kReplace), device_(device) {}

// Where the kernel lacks what transparent proxies need of nf_tables (nft_socket, nft_fib_inet), the
// other rules are more important.
void NftFilter::put(FilterRules rules) {
  auto fill = [&](NftBatch& batch, const std::string& table) { putFilter(batch, table, rules); };
  try {
    table_.replace(fill, rules.guard);
  } catch (const SystemError&) {
    if (std::exchange(rules.localMark, 0) == 0) throw;
    rules.isEmpty() ? table_.remove() : table_.replace(fill, rules.guard);
  }
}

// The kernel runs a table's new chain before the old one, and each of them is switched for itself:
// a packet that is between the two at that moment passes both. So another table guards meanwhile.
// Where that one cannot be made (its owner needs Linux 5.12), the gap is better than no guard.
void NftFilter::set(const FilterRules& rules) {
  std::optional<NftTable> meanwhile;
  if (rules.guard) {
    try {
      meanwhile.emplace("braid_meanwhile-" + device_, purpose(), NftTable::Found::kReplace);
      meanwhile->replace(
          [&](NftBatch& batch, const std::string& table) { putGuard(batch, table, rules); });
    } catch (const SystemError&) {
      meanwhile.reset();
    }
  }
  if (rules.isEmpty()) {
    table_.remove();
  } else {
    put(rules);
  }
  guards_ = rules.guard;
}

}  // namespace braid
