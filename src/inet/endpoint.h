#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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
  /// Text as inet_pton takes it; nullopt otherwise.
  static std::optional<Address> parse(std::string_view text);
  std::string toString() const;

  bool isV4() const { return family == Family::kV4; }
  bool isV6() const { return family == Family::kV6; }
  /// 32, 128, or 0 for no address.
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

}  // namespace braid
