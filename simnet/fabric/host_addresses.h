#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "inet/addresses.h"

namespace braid::sim {

/// The IPv4 addresses of a network's hosts: a /16 prefix followed by the host number in 16 bits.
struct HostAddresses {
  uint8_t first, second;

  Address at(size_t host) const {
    return Address::v4(std::array<uint8_t, 4>{first, second, static_cast<uint8_t>(host / 256),
                                              static_cast<uint8_t>(host % 256)});
  }
  /// The number of the host with this address; the largest size_t when the address is outside the
  /// /16.
  size_t hostOf(const Address& a) const {
    if (!a.isV4() || a.bytes[0] != first || a.bytes[1] != second)
      return std::numeric_limits<size_t>::max();
    return size_t{a.bytes[2]} * 256 + a.bytes[3];
  }
};

}  // namespace braid::sim
