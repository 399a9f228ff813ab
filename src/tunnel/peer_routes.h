#pragma once

#include <memory>
#include <string>
#include <vector>

#include "inet/endpoint.h"
#include "scheduler/path/path_tiers.h"
#include "scheduler/rate/pacer.h"
#include "tunnel/subflow/route.h"
#include "tunnel/uplink_accounts.h"

namespace braid {

/// Where an initiator may start a subflow; names tell routes apart and stay when settings change.
struct NamedRoute {
  std::string name;
  std::string uplink;
  Route route;
  PathPreference own{};              ///< how this side uses it
  PathPreference peers{};            ///< and what the peer is told
  std::shared_ptr<Pacer> ceiling{};  ///< of all that this side sends on the uplink; null: none
};

/// From each socket of each usable uplink to each endpoint of its address family, the best uplinks first.
std::vector<NamedRoute> routesTo(const std::vector<Endpoint>& endpoints,
                                 const std::vector<UplinkAccount>& uplinks);

}  // namespace braid
