#pragma once

#include <string>

#include "host/linux/nft_batch.h"
#include "host/linux/nft_table.h"
#include "host/translator.h"

namespace braid {

/// Chains, sets and rules of a table that translates addresses. Rules look at the first packet of a connection; the
/// kernel remembers the others (conntrack).
void putTranslation(NftBatch& batch, const std::string& table, const Translation& what);

/// Translates by a table `braid_nat-DEVICE` of nf_tables.
class NftTranslator final : public Translator {
 public:
  /// Throws SystemError.
  explicit NftTranslator(const std::string& device);
  void set(const Translation& what) override;

 private:
  NftTable table_;
};

}  // namespace braid
