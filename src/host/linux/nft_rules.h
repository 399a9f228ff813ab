#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "host/linux/nft_table.h"
#include "host/stream_host.h"

namespace braid {

/// The hook at which the kernel calls a chain.
struct NftHook {
  uint32_t number;   ///< NF_INET_*
  int32_t priority;  ///< chains with smaller numbers are called first
  const char* type;  ///< "filter", "nat"
};

/// Writes a chain. `hook`: where the kernel calls it; nullptr: nowhere, rules jump to it.
void putChain(NftBatch& batch, const std::string& table, const std::string& chain,
              const NftHook* hook);

/// Writes a set with the ranges of one address family. Ranges must be in ascending order and not
/// adjacent. `id`: a different number for each set of the batch.
void putAddressSet(NftBatch& batch, const std::string& table, const std::string& set, uint32_t id,
                   bool v6, const std::vector<AddressRange>& ranges);

/// Writes the chains, sets and rules of a table that delivers TCP connections to the listeners at
/// 127.0.0.1 and ::1 with these ports (TPROXY), and marks the packets of connections that were
/// intercepted already. Without `takeNew` no new connections are intercepted.
void putInterception(NftBatch& batch, const std::string& table, const Interception& what,
                     bool takeNew, uint16_t portV4, uint16_t portV6);

/// The set in which that table remembers the new connections that it has let through
/// (Interception::waits), and the key of a connection in it.
std::string passedSet(bool v6);
std::vector<uint8_t> passedKey(const Endpoint& source, const Endpoint& destination);

/// Writes the chains, sets and rules of a table that translates addresses. The rules see the first
/// packet of a connection only; the kernel translates the others by its connection table
/// (conntrack).
void putTranslation(NftBatch& batch, const std::string& table, const Translation& what);

/// Translates addresses by an nf_tables table named `braid_nat-DEVICE`.
class NftTranslator final : public Translator {
 public:
  /// Throws SystemError.
  explicit NftTranslator(const std::string& device);
  void set(const Translation& what) override;
  void forgetTunnelled() override;

 private:
  NftTable table_;
  uint32_t tunnelledMark_ = 0, markMask_ = 0;
};

}  // namespace braid
