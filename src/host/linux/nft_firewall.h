#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "inet/addresses.h"

namespace braid {

/// A copy of the host's packet filter (nf_tables, including the tables of iptables-nft), read once.
/// The copy predicts whether the filter drops a datagram that an unknown sender sends to this host.
/// If that cannot be predicted (limits, sets, foreign extensions), the datagram counts as accepted.
class NftFirewall {
 public:
  /// Reads the filter, which needs CAP_NET_ADMIN. Throws SystemError.
  NftFirewall();
  ~NftFirewall();
  NftFirewall(const NftFirewall&) = delete;
  NftFirewall& operator=(const NftFirewall&) = delete;

  /// The first datagram of an unknown sender to this UDP port, received by `interface`.
  struct Datagram {
    Address::Family family = Address::Family::kV4;
    uint16_t port = 0;
    std::string interface;
    uint32_t index = 0;  ///< interface index
  };
  /// What certainly drops the datagram, as text: "chain input of table inet filter, by its policy".
  /// Empty when nothing certainly drops it.
  std::string droppedBy(const Datagram& datagram) const;

 private:
  struct Reader;
  struct Walk;
  struct Chain {
    uint8_t family = 0;  ///< NFPROTO_*
    std::string table, name;
    bool isInput = false;  ///< hooked into the input path, that is, called for packets to this host
    int32_t priority = 0;
    bool drops = false;                         ///< its policy is to drop
    std::vector<std::vector<uint8_t>> rules{};  ///< each is the contents of an
                                                ///< NFTA_RULE_EXPRESSIONS attribute
  };
  Chain* find(uint8_t family, const std::string& table, const std::string& name);
  const Chain* find(uint8_t family, const std::string& table, const std::string& name) const {
    return const_cast<NftFirewall*>(this)->find(family, table, name);
  }

  std::vector<Chain> chains_;
};

}  // namespace braid
