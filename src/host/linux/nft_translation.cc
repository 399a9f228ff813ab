#include "host/linux/nft_translation.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#include "host/linux/nft_parts.h"

namespace braid {

namespace {

constexpr const char* kIn = "prerouting";
constexpr const char* kOut = "postrouting";
constexpr const char* kSourceSets[] = {"sources4", "sources6"};
// NF_IP_PRI_NAT_DST, NF_IP_PRI_NAT_SRC: where destinations and sources are translated.
constexpr int32_t kDestinationPriority = -100, kSourcePriority = 100;

NftRule& portsOf(NftRule& rule, const PortForward& f) {
  return rule.protocolIs(f.protocol).portsAre(f.firstPort, f.lastPort);
}

// A connection from outside of the tunnel to an address of this host goes on to another one.
void putForward(NftBatch& batch, const std::string& table, const Translation& what, const PortForward& f,
                const Prefix* from) {
  NftRule rule(batch, table, kIn);
  rule.familyIs(f.to.isV6() ? NFPROTO_IPV6 : NFPROTO_IPV4).interfaceIsNot(what.device);
  portsOf(rule, f).destinationIsOfThisHost();
  if (from) rule.sourceIn(from->address.view(), from->length);
  rule.changeDestination(f.to.view(), f.toPort);
}

// And its source becomes the address that this host has on the tunnel's interface.
void putOwnSource(NftBatch& batch, const std::string& table, const Translation& what, const PortForward& f) {
  NftRule rule(batch, table, kOut);
  rule.outInterfaceIs(what.device).destinationIn(f.to.view(), f.to.bits()).protocolIs(f.protocol);
  if (f.toPort) {
    rule.portsAre(f.toPort, f.toPort);
  } else {
    rule.portsAre(f.firstPort, f.lastPort);
  }
  rule.destinationWasChanged().masquerade();
}

void putMasquerade(NftBatch& batch, const std::string& table, const Translation& what, bool v6) {
  uint8_t family = v6 ? NFPROTO_IPV6 : NFPROTO_IPV4;
  NftRule(batch, table, kOut)
      .familyIs(family)
      .interfaceIs(what.device)
      .sourceInSet(kSourceSets[v6], v6)
      .masquerade();
  // The far end of a stream connects from its client's address: no packet of that comes from an interface.
  NftRule(batch, table, kOut)
      .familyIs(family)
      .interfaceIs("")
      .sourceInSet(kSourceSets[v6], v6)
      .sourceIsNotOfThisHost()
      .masquerade();
}

}  // namespace

void putTranslation(NftBatch& batch, const std::string& table, const Translation& what) {
  NftHook in{NF_INET_PRE_ROUTING, kDestinationPriority, "nat"},
      out{NF_INET_POST_ROUTING, kSourcePriority, "nat"};
  putChain(batch, table, kIn, &in);
  putChain(batch, table, kOut, &out);
  putAddressSet(batch, table, kSourceSets[0], 1, false, what.sources);
  putAddressSet(batch, table, kSourceSets[1], 2, true, what.sources);
  for (const PortForward& f : what.forwards) {
    if (f.from.empty()) putForward(batch, table, what, f, nullptr);
    for (const Prefix& from : f.from) putForward(batch, table, what, f, &from);
    if (f.ownSource) putOwnSource(batch, table, what, f);
  }
  NftRule(batch, table, kOut).outInterfaceIs(what.device).verdict(NFT_RETURN);
  if (what.masqueradeV4) putMasquerade(batch, table, what, false);
  if (what.masqueradeV6) putMasquerade(batch, table, what, true);
}

// Not `braid-DEVICE`, which is the table of streams.
NftTranslator::NftTranslator(const std::string& device)
    : table_("braid_nat-" + device, {"cannot translate addresses for `nat` and `forwards`",
                                     "nft_nat, nft_masq, nft_ct and nft_fib_inet"}) {}

void NftTranslator::set(const Translation& what) {
  if (what.isEmpty()) return table_.remove();
  table_.replace([&](NftBatch& batch, const std::string& table) { putTranslation(batch, table, what); });
}

}  // namespace braid
