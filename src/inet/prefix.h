#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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
  auto operator<=>(const Prefix&) const = default;
};

/// Longest-prefix match from address to a small number (a peer's index).
class PrefixTable {
 public:
  /// False when that very prefix is there already.
  bool insert(const Prefix& prefix, size_t value);
  void clear();
  /// Value of the longest prefix that contains the address.
  std::optional<size_t> find(const Address& a) const;

 private:
  struct Entry {
    Prefix prefix;
    size_t value;
  };
  std::vector<Entry> entries_;  // sorted by falling length
};

}  // namespace braid
