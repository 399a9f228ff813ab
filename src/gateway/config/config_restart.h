#pragma once

#include <cstddef>

#include "gateway/config/config.h"
#include "gateway/config/config_node.h"

namespace braid {

/// Header of a frame with a VLAN tag, which device.mtu does not count; bytes.
inline constexpr size_t kTaggedEthernetHeader = 18;

/// What differs between two configurations and needs a restart, each at its key; empty: a reload will do. `tree`: of the
/// main file of `after`. `bufferSize`: bytes that a packet buffer holds.
ConfigErrors needsRestart(const Config& before, const Config& after, const ConfigNode& tree,
                          size_t bufferSize);

}  // namespace braid
