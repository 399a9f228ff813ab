#pragma once

// Other tunnels of this host, such as WireGuard by wg-quick or Tailscale. They give the packets
// that carry them a mark, by which rules keep those out of the tunnel itself.

#include <optional>
#include <string>
#include <vector>

#include "gateway/config/config.h"
#include "host/linux/netlink.h"

namespace braid {

/// Other tunnels whose own packets a gateway's guard drops.
struct DroppedTunnels {
  std::vector<MarkMatch> marks;  ///< those that `device.bypass-marks` lacks; at least one
  /// The state that was found, its consequence, and what to do about it.
  std::string what, why, remedy;
};
/// What `rules` show of such tunnels. nullopt: none, or the configuration does not guard
/// everything (`when-down: block`).
std::optional<DroppedTunnels> tunnelsDroppedBy(const Config& config,
                                               const std::vector<FoundRule>& rules);

/// tunnelsDroppedBy() with this host's rules, as lines for the user. Empty: there are none, or the
/// rules cannot be read.
std::vector<std::string> otherTunnelsWarnings(const Config& config);

}  // namespace braid
