#pragma once

#include <cstddef>

#include "gateway/config/config.h"
#include "gateway/config/config_node.h"

namespace braid {

/// Bytes of an Ethernet header with a VLAN tag, which device.mtu does not count.
inline constexpr size_t kTaggedEthernetHeader = 18;

/// The differences between two configurations that need a restart, each at its key; empty: a reload
/// is enough. `tree`: the tree of the main file of `after`. `bufferSize`: bytes that a packet
/// buffer holds.
ConfigErrors needsRestart(const Config& before, const Config& after, const ConfigNode& tree,
                          size_t bufferSize);

}  // namespace braid
