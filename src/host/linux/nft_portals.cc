#include "host/linux/nft_portals.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#include "host/linux/nft_batch.h"
#include "host/linux/nft_rules.h"

namespace braid {

namespace {

constexpr const char *kIn = "prerouting", *kOut = "output", *kTranslate = "translate",
                     *kCheck = "check";
// Before connections become streams (-140 in nft_rules.cc), which depends on the mark.
constexpr int32_t kMarkPriority = -160;
constexpr int32_t kSourcePriority = 100;                  // NF_IP_PRI_NAT_SRC
constexpr int32_t kCheckPriority = kSourcePriority + 10;  // the source is translated by then

void putMark(NftBatch& batch, const std::string& table, const PortalRules& rules,
             const PortalRules::Way& way, uint16_t port, const std::string& from) {
  NftRule rule(batch, table, from.empty() ? kOut : kIn);
  if (!from.empty()) rule.interfaceIs(from);
  rule.markIs(0, rules.markMask)
      .destinationIn(way.address.view(), way.address.bits())
      .protocolIs(IPPROTO_TCP)
      .portsAre(port, port)
      .setMark(way.mark, rules.markMask)
      .verdict(NFT_RETURN);
}

// The routes of the mark may lead a packet out by another interface. Other rules of the host may
// change its destination. A connection that began through the tunnel is not translated, so it has
// the source of a host of the LAN. All other packets with these marks are replies.
void putCheck(NftBatch& batch, const std::string& table, const PortalRules& rules) {
  for (const PortalRules::Way& way : rules.ways) {
    for (uint16_t port : way.ports) {
      NftRule(batch, table, kCheck)
          .markIs(way.mark, rules.markMask)
          .outInterfaceIs(way.interface)
          .destinationIn(way.address.view(), way.address.bits())
          .protocolIs(IPPROTO_TCP)
          .portsAre(port, port)
          .sourceIsOfThisHost()
          .verdict(NFT_RETURN);
    }
  }
  for (const PortalRules::Way& way : rules.ways)
    NftRule(batch, table, kCheck).markIs(way.mark, rules.markMask).isReply(false).verdict(NF_DROP);
}

}  // namespace

void putPortals(NftBatch& batch, const std::string& table, const PortalRules& rules) {
  NftHook in{NF_INET_PRE_ROUTING, kMarkPriority, "filter"},
      out{NF_INET_LOCAL_OUT, kMarkPriority, "route"},
      translate{NF_INET_POST_ROUTING, kSourcePriority, "nat"},
      check{NF_INET_POST_ROUTING, kCheckPriority, "filter"};
  // The kernel switches one chain after the other, so the marks come last.
  putChain(batch, table, kCheck, &check);
  putChain(batch, table, kTranslate, &translate);
  putChain(batch, table, kIn, &in);
  putChain(batch, table, kOut, &out);
  for (const PortalRules::Way& way : rules.ways) {
    for (uint16_t port : way.ports) {
      putMark(batch, table, rules, way, port, "");
      for (const std::string& from : rules.from) putMark(batch, table, rules, way, port, from);
    }
    NftRule(batch, table, kTranslate)
        .markIs(way.mark, rules.markMask)
        .outInterfaceIs(way.interface)
        .destinationIn(way.address.view(), way.address.bits())
        .protocolIs(IPPROTO_TCP)
        .masquerade();
  }
  putCheck(batch, table, rules);
}

NftPortals::NftPortals(const std::string& device)
    : table_("braid_portal-" + device,
             {"cannot let hosts of the LAN out to the page of a captive portal",
              "nft_masq, nft_ct, nft_chain_route and nft_fib_inet"}) {}

void NftPortals::set(const PortalRules& rules) {
  table_.replace(
      [&](NftBatch& batch, const std::string& table) { putPortals(batch, table, rules); });
}

}  // namespace braid
