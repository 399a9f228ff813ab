#pragma once

#include <nlohmann/json.hpp>

#include "gateway/config/config.h"

namespace braid {

/// Connects to the peers of `config` by its uplinks, as a gateway does, and changes nothing of the
/// host: no device, route, address or firewall rule. Waits until every path is active and sized, at
/// most 14 s. Nothing else of this configuration may be running. Returns an object:
///   "left_out"  names of uplinks that are not tried: the daemon itself adds their default route
///   "status"    what the control socket answers to "status"
///   "history"   what it answers to "history"
///   "warnings"  the log's warnings and errors, an array of lines
/// The last three are missing if no peer has an endpoint, or no uplink is left.
/// Throws std::runtime_error when the gateway cannot start.
nlohmann::json tryPaths(Config config);

}  // namespace braid
