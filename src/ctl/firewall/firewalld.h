#pragma once

#include <vector>

#include "ctl/firewall/firewall_program.h"

namespace braid {

/// The steps by which firewalld lets these through: a zone for the tunnel's device, and policies
/// between it and the zones of the other interfaces (any zone for an interface that none names),
/// narrowed to the LAN's networks. All of them are permanent.
std::vector<FirewallStep> firewalldSteps(const std::vector<Obstacle>& obstacles,
                                         const FirewallTask& task);

}  // namespace braid
