#pragma once

#include <string>

#include "host/linux/nft_table.h"
#include "host/portal_gate.h"

namespace braid {

/// Writes the chains and rules of a table for PortalRules.
void putPortals(NftBatch& batch, const std::string& table, const PortalRules& rules);

/// Keeps PortalRules in an nf_tables table named `braid_portal-DEVICE`, which the kernel removes
/// when the process ends (NFT_TABLE_F_OWNER). Only its marks let packets out: the routes that they
/// lead to and the guard that lets them pass do nothing without them.
class NftPortals final : public PortalGate {
 public:
  /// Throws SystemError.
  explicit NftPortals(const std::string& device);
  void set(const PortalRules& rules) override;

 private:
  NftTable table_;
};

}  // namespace braid
