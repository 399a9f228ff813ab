#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"

namespace braid {

/// ECN codepoints of the IP header (RFC 3168 section 5).
enum class Ecn : uint8_t { kNotEct = 0, kEct1 = 1, kEct0 = 2, kCe = 3 };

/// An IPv4 or IPv6 address. IPv4 fills the first 4 bytes; the rest is zero.
struct Address {
  enum class Family : uint8_t { kNone, kV4, kV6 };
  Family family = Family::kNone;
  std::array<uint8_t, 16> bytes{};

  static Address v4(ByteView four);
  static Address v6(ByteView sixteen);
  /// Parses text in the form that inet_pton() accepts; nullopt otherwise.
  static std::optional<Address> parse(std::string_view text);
  std::string toString() const;

  bool isV4() const { return family == Family::kV4; }
  bool isV6() const { return family == Family::kV6; }
  /// The length of the address in bits: 32, 128, or 0 for no address.
  unsigned bits() const { return isV4() ? 32 : isV6() ? 128 : 0; }
  ByteView view() const { return {bytes.data(), bits() / 8}; }
  auto operator<=>(const Address&) const = default;
};

/// An address and a UDP port (host order).
struct Endpoint {
  Address address;
  uint16_t port = 0;

  /// "192.0.2.1:443" or "[2001:db8::1]:443"; nullopt otherwise.
  static std::optional<Endpoint> parse(std::string_view text);
  std::string toString() const;
  auto operator<=>(const Endpoint&) const = default;
};

/// An address prefix; host bits are zero.
struct Prefix {
  Address address;
  unsigned length = 0;

  /// "10.0.0.0/8", "fd00::/16"; a bare address means all its bits. Host bits are cleared. nullopt
  /// otherwise.
  static std::optional<Prefix> parse(std::string_view text);
  std::string toString() const;
  bool contains(const Address& a) const;
  /// Whether the two prefixes have an address in common.
  bool overlaps(const Prefix& b) const { return contains(b.address) || b.contains(address); }
  /// Whether this holds a whole address family or one half of it; globalUnicast() counts as all of
  /// IPv6. Two halves instead of 0.0.0.0/0 or ::/0 leave a default route alone. A peer with such a
  /// prefix gets all packets to destinations that no other peer has.
  bool isEverything() const;
  auto operator<=>(const Prefix&) const = default;
};

/// 2000::/3, the part of IPv6 that hosts of the Internet have (RFC 4291 section 2.4).
const Prefix& globalUnicast();

/// Longest-prefix match from an address to a small number (a peer's index). It is a binary trie
/// without nodes that have a single child (Morrison, "PATRICIA", Journal of the ACM, 1968). The
/// steps of find() are bounded by the bits of an address, whatever the number of prefixes.
class PrefixTable {
 public:
  /// Adds a prefix. False when exactly this prefix is in the table already.
  bool insert(const Prefix& prefix, size_t value);
  void clear() { roots_ = {}; }
  /// The value of the longest prefix that contains the address; nullopt when none does.
  std::optional<size_t> find(const Address& a) const;

 private:
  /// A prefix of the table, or a fork: the longest common prefix of two subtrees. All prefixes
  /// below a node begin with the node's prefix.
  struct Node {
    Prefix prefix;
    std::optional<size_t> value{};                ///< nullopt: only a fork
    std::array<std::unique_ptr<Node>, 2> next{};  ///< children, by the first bit after the prefix
  };
  std::array<std::unique_ptr<Node>, 3> roots_;  ///< by Address::Family
};

/// Why an address is special, that is, not the address of an ordinary host.
enum class SpecialKind : uint8_t {
  kNobody,  ///< no host behind a router has this address: loopback, "this network", special IPv4
            ///< addresses embedded in IPv6
  kLink,    ///< valid on a single link only: link-local, multicast, limited broadcast
  kCloud,   ///< a cloud's instance metadata service, which tells virtual machines their secrets
};

/// The special range that an address is in.
struct SpecialRange {
  SpecialKind kind;
  unsigned length;  ///< of the range's prefix, in bits
  bool operator==(const SpecialRange&) const = default;
};

/// The table of special destinations. A look-up takes a few steps and allocates nothing.
class SpecialAddresses {
 public:
  SpecialAddresses();
  /// The narrowest special range that contains the address; nullopt when the address is not
  /// special.
  std::optional<SpecialRange> find(const Address& address) const;
  /// Whether the network overlaps a special range. Searches the whole table.
  bool overlap(const Prefix& network) const;

 private:
  struct Entry {
    Prefix prefix;
    SpecialKind kind;
  };
  std::vector<Entry> entries_;
  PrefixTable table_;       ///< the values are indices into `entries_`
  PrefixTable embeddings_;  ///< IPv6 ranges whose addresses embed an IPv4 address
};

}  // namespace braid
