#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "inet/endpoint.h"

namespace braid {

/// The host's packet filter (nf_tables, those of iptables-nft among it), read once to ask what becomes of a datagram
/// that a stranger sends to this host. What cannot be told (limits, sets, foreign extensions) counts as letting it in.
class NftFirewall {
 public:
  /// Throws SystemError: without CAP_NET_ADMIN nobody may read it.
  NftFirewall();
  ~NftFirewall();
  NftFirewall(const NftFirewall&) = delete;
  NftFirewall& operator=(const NftFirewall&) = delete;

  /// The first datagram to this UDP port, coming in by `interface`.
  struct Datagram {
    Address::Family family = Address::Family::kV4;
    uint16_t port = 0;
    std::string interface;
    uint32_t index = 0;  ///< of the interface
  };
  /// Who drops it for sure, "chain input of table inet filter, by its policy"; empty: nobody is known to.
  std::string droppedBy(const Datagram& datagram) const;

 private:
  struct Reader;
  struct Walk;
  struct Chain {
    uint8_t family = 0;  ///< NFPROTO_*
    std::string table, name;
    bool isInput = false;  ///< the kernel calls it for packets to this host
    int32_t priority = 0;
    bool drops = false;                         ///< by its policy
    std::vector<std::vector<uint8_t>> rules{};  ///< each the NFTA_RULE_EXPRESSIONS attribute
  };
  Chain* find(uint8_t family, const std::string& table, const std::string& name);
  const Chain* find(uint8_t family, const std::string& table, const std::string& name) const {
    return const_cast<NftFirewall*>(this)->find(family, table, name);
  }

  std::vector<Chain> chains_;
};

}  // namespace braid
