#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "inet/addresses.h"

namespace braid {

/// A packet. Its way through the host's packet filter is predicted.
struct NftPacket {
  enum class Hook : uint8_t {
    kInput,    ///< delivered to a socket of this host
    kForward,  ///< passed on to another interface
  };
  Hook hook = Hook::kInput;
  Address::Family family = Address::Family::kV4;
  uint8_t protocol = 17;  ///< of IP: UDP, or 6 for the first packet of a TCP connection
  uint16_t port = 0;      ///< destination port
  std::string in{};       ///< interface by which it comes in
  uint32_t inIndex = 0;   ///< 0: unknown
  std::string out{};      ///< kForward: interface by which it leaves
  uint32_t outIndex = 0;
  /// nullopt: a stranger's address, which is in none of the networks that rules name.
  std::optional<Address> source{}, destination{};
  /// kInput: the destination is not an address of this host (TPROXY).
  bool isForeign = false;
  uint32_t mark = 0;
  bool isAnswer = false;      ///< it belongs to a connection that is established
  bool isTranslated = false;  ///< the connection's destination was translated (DNAT)
};

/// What drops a packet.
struct NftDrop {
  uint8_t family = 0;        ///< NFPROTO_* of the table
  std::string table, chain;  ///< the chain that the kernel calls
  std::string within{};      ///< the chain whose rule drops the packet
  bool byPolicy = false;     ///< no rule drops it, but the chain's policy

  /// "inet filter", as nft(8) names the table.
  std::string tableWords() const;
  /// "chain input of table inet filter, by its policy"
  std::string toString() const;
  bool operator==(const NftDrop&) const = default;
};

/// A copy of the host's packet filter (nf_tables, including the tables of iptables-nft), read once.
/// The copy predicts whether the filter drops a packet. If that cannot be predicted (limits,
/// foreign extensions), the packet counts as accepted.
class NftFirewall {
 public:
  /// Reads the filter, which needs CAP_NET_ADMIN. Throws SystemError.
  NftFirewall();
  ~NftFirewall();
  NftFirewall(const NftFirewall&) = delete;
  NftFirewall& operator=(const NftFirewall&) = delete;

  /// A number that the kernel changes with every change of the filter. Needs CAP_NET_ADMIN. Throws
  /// SystemError.
  static uint32_t generation();

  /// What certainly drops the packet, one entry for each chain that the kernel calls, in the
  /// kernel's order: the packet passes only when none of them drops it.
  std::vector<NftDrop> drops(const NftPacket& packet) const;
  /// Whether there is a chain of this name, or one whose name begins with it (`isPrefix`).
  /// `family`: NFPROTO_*; 0: any.
  bool hasChain(uint8_t family, const std::string& table, const std::string& name,
                bool isPrefix = false) const;

 private:
  struct Reader;
  struct Walk;
  struct Chain {
    uint8_t family = 0;  ///< NFPROTO_*
    std::string table, name;
    std::optional<NftPacket::Hook> hook{};  ///< where the kernel calls it
    int32_t priority = 0;
    bool drops = false;                         ///< its policy is to drop
    std::vector<std::vector<uint8_t>> rules{};  ///< each is the contents of an
                                                ///< NFTA_RULE_EXPRESSIONS attribute
  };
  struct Element {
    std::vector<uint8_t> key;
    bool isEnd = false;      ///< the first value behind an interval
    bool isDefault = false;  ///< stands for all values that no other element has
    int32_t code = 0;        ///< of a verdict map
    std::string chain{};
  };
  struct Set {
    uint8_t family = 0;
    std::string table, name;
    bool isInterval = false, isVerdictMap = false;
    bool isKnown = true;  ///< all its elements were read
    std::vector<Element> elements{};
  };
  Chain* find(uint8_t family, const std::string& table, const std::string& name);
  const Chain* find(uint8_t family, const std::string& table, const std::string& name) const {
    return const_cast<NftFirewall*>(this)->find(family, table, name);
  }
  const Set* findSet(uint8_t family, const std::string& table, const std::string& name) const;

  std::vector<Chain> chains_;
  std::vector<Set> sets_;
};

}  // namespace braid
