#include "tunnel/peer_routes.h"

#include <algorithm>

namespace braid {

std::vector<NamedRoute> routesTo(const std::vector<Endpoint>& endpoints,
                                 const std::vector<UplinkAccount>& uplinks) {
  std::vector<NamedRoute> routes;
  // Nothing is told while nothing is asked for. Numbers are needed by all, then.
  bool telling = std::any_of(uplinks.begin(), uplinks.end(), [](const UplinkAccount& u) {
    return u.spec.preference != PathPreference{} || u.spec.peerCeiling > 0;
  });
  for (size_t number = 1; number <= uplinks.size(); ++number) {
    const UplinkAccount& account = uplinks[number - 1];
    const UplinkSpec& uplink = account.spec;
    if (!account.isUsable()) continue;
    PathPreference own = uplink.preference;
    if (telling) own.uplink = static_cast<uint8_t>(number);
    PathPreference peers = own;
    peers.ceiling = uplink.peerCeiling;
    for (size_t i = 0; i < uplink.sockets.size(); ++i) {
      for (const Endpoint& remote : endpoints) {
        if (remote.address.family != uplink.sockets[i].family) continue;
        std::string name = uplink.name + "#" + std::to_string(i) + ">" + remote.toString();
        routes.push_back(
            {name, uplink.name, {uplink.sockets[i].id, {}, remote}, own, peers, account.ceiling});
      }
    }
  }
  // Handshakes go the best way first.
  std::stable_sort(routes.begin(), routes.end(),
                   [](const NamedRoute& a, const NamedRoute& b) { return a.own.use < b.own.use; });
  return routes;
}

}  // namespace braid
