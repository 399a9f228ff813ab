#pragma once

#include <string>

#include "host/linux/nft_table.h"
#include "host/packet_filter.h"

namespace braid {

/// Writes the chains, sets and rules of a table for FilterRules.
void putFilter(NftBatch& batch, const std::string& table, const FilterRules& rules);

/// Keeps FilterRules in an nf_tables table named `braid_routes-DEVICE`.
class NftFilter final : public PacketFilter {
 public:
  /// Throws SystemError.
  explicit NftFilter(const std::string& device);
  void set(const FilterRules& rules) override;
  bool isIntact() override { return !guards_ || isThere(); }
  /// Whether the host has the table, whoever made it.
  bool isThere() { return table_.exists(); }

 private:
  void put(FilterRules rules);

  NftTable table_;
  std::string device_;
  bool guards_ = false;
};

}  // namespace braid
