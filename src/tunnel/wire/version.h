#pragma once

// Which versions of the protocol there are and how two sides agree on one (docs/protocol.md section 2).

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace braid {

/// The number N of `braid/N`.
using ProtocolVersion = uint8_t;

/// The versions that this build speaks, the highest first.
inline constexpr std::array<ProtocolVersion, 1> kProtocolVersions{2};

/// The highest version that both sides speak; nullopt: there is none. Neither list need be in order.
constexpr std::optional<ProtocolVersion> highestCommon(std::span<const ProtocolVersion> own,
                                                       std::span<const ProtocolVersion> offered) {
  std::optional<ProtocolVersion> highest;
  for (ProtocolVersion version : own) {
    bool common = std::find(offered.begin(), offered.end(), version) != offered.end();
    if (common && (!highest || version > *highest)) highest = version;
  }
  return highest;
}

}  // namespace braid
