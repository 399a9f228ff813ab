#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/linux/nft_batch.h"
#include "host/translator.h"

namespace braid {

/// Where the kernel calls a chain.
struct NftHook {
  uint32_t number;   ///< NF_INET_*
  int32_t priority;  ///< chains of smaller numbers come first
  const char* type;  ///< "filter", "nat"
};

/// A chain; nullptr: one that rules jump to.
void putChain(NftBatch& batch, const std::string& table, const std::string& chain, const NftHook* hook);

/// A set of addresses of one family with these ranges of it, which are ordered and apart from each other. `id`: another
/// one for each set of the batch.
void putAddressSet(NftBatch& batch, const std::string& table, const std::string& set, uint32_t id, bool v6,
                   const std::vector<AddressRange>& ranges);

}  // namespace braid
