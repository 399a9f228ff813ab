#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "gateway/config/config.h"

namespace braid {

/// Header of a frame with a VLAN tag, which device.mtu does not count; bytes.
inline constexpr size_t kTaggedEthernetHeader = 18;

/// What differs between two configurations and needs a restart, one line each ("device.name: ..."); empty: a
/// reload will do. `bufferSize`: bytes that a packet buffer holds.
std::vector<std::string> needsRestart(const Config& before, const Config& after, size_t bufferSize);

}  // namespace braid
