#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "inet/prefix.h"

namespace braid {

/// What sets an address apart from those of ordinary hosts.
enum class SpecialKind : uint8_t {
  kNobody,  ///< no host behind a router has it: loopback, "this network", IPv4 inside of IPv6 where that is special
  kLink,   ///< of a single link: link-local, multicast, limited broadcast
  kCloud,  ///< where a cloud tells its virtual machines their secrets (instance metadata)
};

/// The special range that an address is in.
struct SpecialRange {
  SpecialKind kind;
  unsigned length;  ///< of its prefix, bits
  bool operator==(const SpecialRange&) const = default;
};

/// The table of special destinations. A look-up takes a few steps and allocates nothing.
class SpecialAddresses {
 public:
  SpecialAddresses();
  /// The narrowest range that has the address; nullopt: it is like any other.
  std::optional<SpecialRange> find(const Address& address) const;
  /// Whether the network has an address that is special by itself, or lies in such a range. Looks at the whole table.
  bool overlap(const Prefix& network) const;

 private:
  struct Entry {
    Prefix prefix;
    SpecialKind kind;
  };
  std::vector<Entry> entries_;
  PrefixTable table_;       ///< to places in `entries_`
  PrefixTable embeddings_;  ///< IPv6 ranges whose addresses have an IPv4 address inside
};

}  // namespace braid
