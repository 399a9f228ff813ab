#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "inet/endpoint.h"

namespace braid {

/// An address prefix; host bits are zero.
struct Prefix {
  Address address;
  unsigned length = 0;

  /// "10.0.0.0/8", "fd00::/16"; a bare address means all its bits. Host bits are cleared. nullopt otherwise.
  static std::optional<Prefix> parse(std::string_view text);
  std::string toString() const;
  bool contains(const Address& a) const;
  /// Whether one holds an address of the other.
  bool overlaps(const Prefix& b) const { return contains(b.address) || b.contains(address); }
  /// All of the internet, or a half of it: two halves in place of 0.0.0.0/0 or ::/0 leave a default route alone. Whoever
  /// has such a prefix is the way to what nobody else has.
  bool isEverything() const { return length <= 1; }
  auto operator<=>(const Prefix&) const = default;
};

/// Longest-prefix match from address to a small number (a peer's index): a binary trie in which nodes with a
/// single way on are left out (Morrison, "PATRICIA", Journal of the ACM, 1968). The steps of find() are bounded
/// by the bits of an address, whatever the number of prefixes.
class PrefixTable {
 public:
  /// False when that very prefix is there already.
  bool insert(const Prefix& prefix, size_t value);
  void clear() { roots_ = {}; }
  /// Value of the longest prefix that contains the address; nullopt: none does.
  std::optional<size_t> find(const Address& a) const;

 private:
  /// A prefix of the table, or the place where two of them part. All prefixes below begin with this one.
  struct Node {
    Prefix prefix;
    std::optional<size_t> value{};                ///< nullopt: only a fork
    std::array<std::unique_ptr<Node>, 2> next{};  ///< by the bit behind the prefix
  };
  std::array<std::unique_ptr<Node>, 3> roots_;  ///< by Address::Family
};

}  // namespace braid
