#pragma once

#include <cstddef>
#include <string>

#include "host/system.h"

namespace braid {

/// Makes a TUN device (IP packets, no prefix) in a network namespace and sets it up, then returns
/// to the caller's namespace. An empty netns is the caller's own. The descriptor is non-blocking;
/// the device exists as long as it is open. Throws std::runtime_error with the device's name and
/// the failed step. Needs CAP_NET_ADMIN, and CAP_SYS_ADMIN for a netns.
UniqueFd makeTunDevice(const std::string& netns, const std::string& device, size_t mtu);

}  // namespace braid
