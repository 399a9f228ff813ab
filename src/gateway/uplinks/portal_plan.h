#pragma once

#include <map>
#include <string>
#include <vector>

#include "gateway/config/config.h"
#include "gateway/uplinks/portal_watch.h"
#include "gateway/uplinks/uplink.h"
#include "host/network.h"
#include "host/portal_gate.h"

namespace braid {

/// What a portal's plan depends on besides configuration and host.
struct PortalSituation {
  std::string device;  ///< the name that the host gave the gateway's interface
  uint32_t markMask = 0;
  std::vector<Uplinks::Exit> exits;  ///< in the order of the configuration
  bool peerUp = false;               ///< by any uplink
};

/// What is opened for the pages of captive portals. A plain value.
struct PortalPlan {
  PortalRules rules;
  /// By uplink: what hosts of the LAN reach, and why not the rest. One line.
  std::map<std::string, std::string> told;
};

/// Opens TCP to the port of the page, 80 and 443 of these addresses, by the portal's uplink: of
/// those that nobody has, and, while no peer is up, of those of the page that are on the uplink's
/// own link (`portal-check: any`: of all of the page). A network may say of any address that it is
/// a portal's page, so none is opened that is known to be of the LAN, of the tunnel, or of a name
/// server behind it. An address that several portals have leads to that of the uplink which stands
/// first in the configuration.
PortalPlan planPortals(const Config& config, const NetworkTable& host,
                       const std::vector<Portal>& portals, const PortalSituation& situation);

}  // namespace braid
