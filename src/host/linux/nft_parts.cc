#include "host/linux/nft_parts.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>

#include <algorithm>
#include <iterator>
#include <span>

namespace braid {

namespace {

// Numbers by which nft shows the type of an address in a set (libnftables' TYPE_IPADDR, TYPE_IP6ADDR).
constexpr uint32_t kTypeV4 = 7, kTypeV6 = 8;
constexpr size_t kElementsPerMessage = 500;  // a list of elements has at most 65,535 bytes

// The address behind this one; false: there is none.
bool next(Address& a) {
  for (size_t i = a.view().size(); i-- > 0;)
    if (++a.bytes[i] != 0) return true;
  return false;
}

void putElement(NftBatch& batch, const Address& at, bool end) {
  size_t element = batch.nest(NFTA_LIST_ELEM);
  if (end) batch.put32(NFTA_SET_ELEM_FLAGS, NFT_SET_ELEM_INTERVAL_END);
  size_t key = batch.nest(NFTA_SET_ELEM_KEY);
  batch.put(NFTA_DATA_VALUE, at.view());
  batch.endNest(key);
  batch.endNest(element);
}

void putElements(NftBatch& batch, const std::string& table, const std::string& set,
                 std::span<const AddressRange> ranges) {
  batch.begin(NFT_MSG_NEWSETELEM, NLM_F_CREATE);
  batch.put(NFTA_SET_ELEM_LIST_TABLE, table);
  batch.put(NFTA_SET_ELEM_LIST_SET, set);
  size_t list = batch.nest(NFTA_SET_ELEM_LIST_ELEMENTS);
  for (const AddressRange& range : ranges) {
    putElement(batch, range.first, false);
    Address behind = range.last;
    if (next(behind)) putElement(batch, behind, true);
  }
  batch.endNest(list);
}

}  // namespace

void putChain(NftBatch& batch, const std::string& table, const std::string& chain, const NftHook* hook) {
  batch.begin(NFT_MSG_NEWCHAIN, NLM_F_CREATE);
  batch.put(NFTA_CHAIN_TABLE, table);
  batch.put(NFTA_CHAIN_NAME, chain);
  if (!hook) return;
  size_t place = batch.nest(NFTA_CHAIN_HOOK);
  batch.put32(NFTA_HOOK_HOOKNUM, hook->number);
  batch.put32(NFTA_HOOK_PRIORITY, static_cast<uint32_t>(hook->priority));
  batch.endNest(place);
  batch.put32(NFTA_CHAIN_POLICY, NF_ACCEPT);
  batch.put(NFTA_CHAIN_TYPE, std::string(hook->type));
}

void putAddressSet(NftBatch& batch, const std::string& table, const std::string& set, uint32_t id, bool v6,
                   const std::vector<AddressRange>& all) {
  batch.begin(NFT_MSG_NEWSET, NLM_F_CREATE);
  batch.put(NFTA_SET_TABLE, table);
  batch.put(NFTA_SET_NAME, set);
  batch.put32(NFTA_SET_FLAGS, NFT_SET_INTERVAL);
  batch.put32(NFTA_SET_KEY_TYPE, v6 ? kTypeV6 : kTypeV4);
  batch.put32(NFTA_SET_KEY_LEN, v6 ? 16 : 4);
  batch.put32(NFTA_SET_ID, id);
  std::vector<AddressRange> ranges;
  std::copy_if(all.begin(), all.end(), std::back_inserter(ranges),
               [&](const AddressRange& r) { return r.first.isV6() == v6; });
  for (size_t at = 0; at < ranges.size(); at += kElementsPerMessage)
    putElements(batch, table, set,
                std::span(ranges).subspan(at, std::min(kElementsPerMessage, ranges.size() - at)));
}

}  // namespace braid
