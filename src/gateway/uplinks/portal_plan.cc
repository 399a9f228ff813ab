#include "gateway/uplinks/portal_plan.h"

#include <algorithm>
#include <set>

#include "gateway/join/address_plan.h"
#include "gateway/network/route_plan.h"

namespace braid {

namespace {

bool isInOne(const std::vector<Prefix>& list, const Address& address) {
  return std::ranges::any_of(
      list, [&](const Prefix& p) { return !p.isEverything() && p.contains(address); });
}

/// The networks whose hosts are known to be of the LAN or behind a peer. Only a route for
/// everything says nothing about that.
std::vector<Prefix> knownNetworks(const Config& config, const NetworkTable& host,
                                  const std::string& device) {
  std::vector<Prefix> out = lanNetworks(config, host, device);
  for (const InterfaceAddress& a : config.device.addresses) out.push_back(networkOf(a));
  for (const Address& server : config.dns.servers) out.push_back({server, server.bits()});
  out.insert(out.end(), config.device.routes.begin(), config.device.routes.end());
  for (const PeerConfig& peer : config.peers)
    out.insert(out.end(), peer.options.prefixes.begin(), peer.options.prefixes.end());
  return out;
}

/// The interfaces at which hosts of the LAN are.
std::vector<std::string> lanInterfaces(const Config& config, const NetworkTable& host,
                                       const std::string& device) {
  std::vector<std::string> out;
  for (const Link* link : lanLinks(config, host, device))
    if (link->kind != "tun" && !link->addresses.empty() && !host.hasDefaultRoute(link->index))
      out.push_back(link->name);
  return out;
}

bool isOnLink(const NetworkTable& host, const std::string& interface, const Address& address) {
  const Link* link = host.find(interface);
  return link && std::ranges::any_of(link->addresses, [&](const LinkAddress& a) {
           Prefix network = networkOf({a.address, a.prefixLength});
           return !network.isEverything() && network.contains(address);
         });
}

class Planner {
 public:
  Planner(const Config& config, const NetworkTable& host, const PortalSituation& situation)
      : config_(config),
        host_(host),
        situation_(situation),
        known_(knownNetworks(config, host, situation.device)) {}

  /// Why the address is not opened; empty: it is.
  std::string obstacle(const Address& address, const Uplinks::Exit& exit) const {
    static const SpecialAddresses kSpecial;
    if (exit.mark == 0) return "the host's own routes lead there";
    if (isInOne(known_, address)) return "it is of the LAN, the tunnel or `dns`";
    bool onLink = isOnLink(host_, exit.interface, address);
    if (!PortalWatch::isNobodys(address)) {
      if (kSpecial.find(address) || host_.isOwn(address)) return "only this host or link has it";
      if (situation_.peerUp) return "a peer is up by another uplink";
      if (!onLink && config_.portals != PortalCheck::kAny)
        return "it is not on that uplink's own link (see 'portal-check')";
    }
    if (!onLink && !(address.isV4() ? exit.v4 : exit.v6)) return "that uplink has no router";
    auto first = taken_.find(address);
    return first == taken_.end() ? "" : "it leads to the portal of " + first->second;
  }

  void plan(const Portal& portal, const Uplinks::Exit& exit, PortalPlan& out) {
    std::set<uint16_t> ports{Portal::kHttp, Portal::kHttps, portal.port};
    std::vector<Address> addresses = PortalWatch::nobodys();
    for (const Address& a : portal.addresses)
      if (!PortalWatch::isNobodys(a)) addresses.push_back(a);
    std::string open, shut;
    for (const Address& a : addresses) {
      std::string why = obstacle(a, exit);
      // An address that nobody has, of a family without a router there, is not worth a word.
      bool isSpare = PortalWatch::isNobodys(a) && !(a.isV4() ? exit.v4 : exit.v6);
      if (why.empty()) {
        taken_.emplace(a, portal.uplink);
        out.rules.ways.push_back({exit.interface, exit.mark, a, {ports.begin(), ports.end()}});
        open += (open.empty() ? "" : ", ") + a.toString();
      } else if (!isSpare) {
        shut += "; not " + a.toString() + ": " + why;
      }
    }
    std::string list;
    for (uint16_t port : ports) list += (list.empty() ? "" : ", ") + std::to_string(port);
    out.told[portal.uplink] =
        (open.empty() ? "nothing is opened" : "TCP ports " + list + " of " + open) + shut;
  }

 private:
  const Config& config_;
  const NetworkTable& host_;
  const PortalSituation& situation_;
  std::vector<Prefix> known_;
  std::map<Address, std::string> taken_;  ///< by which uplink's portal
};

}  // namespace

PortalPlan planPortals(const Config& config, const NetworkTable& host,
                       const std::vector<Portal>& portals, const PortalSituation& situation) {
  PortalPlan out;
  if (portals.empty()) return out;
  Planner planner(config, host, situation);
  for (const Uplinks::Exit& exit : situation.exits)
    for (const Portal& portal : portals)
      if (exit.uplink == portal.uplink) planner.plan(portal, exit, out);
  out.rules.from = lanInterfaces(config, host, situation.device);
  out.rules.markMask = situation.markMask;
  return out;
}

}  // namespace braid
