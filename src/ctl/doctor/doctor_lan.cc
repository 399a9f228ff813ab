#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "ctl/doctor/doctor.h"
#include "ctl/firewall/openings.h"
#include "gateway/join/address_plan.h"
#include "gateway/network/route_plan.h"

namespace braid {
namespace {

bool isGlobalV6(const LinkAddress& a) {
  return a.address.isV6() && a.scope == 0 && !a.deprecated && !isPrivate(a.address);
}

// Whether hosts of the LAN reach other hosts of the IPv6 Internet through the tunnel.
bool takesGlobalV6(const Config& config) {
  const Prefix global = *Prefix::parse("2000::/3");
  return std::ranges::any_of(config.device.routes, [&](const Prefix& p) {
    return p.address.isV6() && p.overlaps(global) && !isPrivate(p);
  });
}

// What comes in by a port of a bridge belongs to the bridge, and the port's own addresses are dead.
void checkBridge(const Patient& patient, const Link& link, bool isUplink, DoctorReport& report) {
  auto bridge = patient.table.links().find(static_cast<int>(link.master));
  if (bridge == patient.table.links().end() || bridge->second.kind != "bridge") return;
  const std::string& name = bridge->second.name;
  for (const LinkAddress& a : link.addresses) {
    if (a.scope != 0) continue;
    std::string own = InterfaceAddress{a.address, a.prefixLength}.toString();
    report.wrong(
        {"bridge", link.name + " has the address " + own + " and is a port of the bridge " + name,
         "what comes in by " + link.name + " goes to the bridge: the address is not reached",
         "ip address del " + own + " dev " + link.name + " && ip address add " + own + " dev " +
             name + "; and so where the addresses are configured" +
             (isUplink ? "; then name " + name +
                             " as the uplink's interface, and put the default route there"
                       : "")});
  }
}

// Whether no other interface leads to the network, and this one to all of it: interfaces of
// containers without carrier have networks within large ones.
bool leadsAlone(const Lan& lan, const std::vector<Lan>& all) {
  bool hasAll = std::ranges::any_of(lan.link->addresses, [&](const LinkAddress& a) {
    return a.prefixLength <= lan.network.length &&
           networkOf({a.address, a.prefixLength}).contains(lan.network.address);
  });
  return (hasAll || !lan.isOnLink) && std::ranges::none_of(all, [&](const Lan& other) {
           return other.network == lan.network && other.link->up;
         });
}

// Whether the default route leads to the network: the LAN's own router, at one of these interfaces,
// is the host's, too.
bool isBehindRouter(const Patient& patient, const Prefix& network,
                    const std::set<const Link*>& lans) {
  return std::ranges::any_of(patient.table.defaultRoutes(), [&](const DefaultRoute& route) {
    return route.via.family == network.address.family &&
           std::ranges::any_of(lans, [&](const Link* l) { return l->index == route.link; });
  });
}

// Whether an address of the network is this host's own, at no LAN.
bool isOfLoopback(const Patient& patient, const Prefix& network) {
  const Link* lo = patient.table.find("lo");
  return lo && std::ranges::any_of(lo->addresses, [&](const LinkAddress& a) {
           return network.contains(a.address);
         });
}

void checkLink(const Lan& lan, DoctorReport& report) {
  const Link& link = *lan.link;
  if (link.up) return report.fine("lan", lan.network.toString() + " is at " + link.name);
  report.wrong({"lan",
                link.name + ", which leads to " + lan.network.toString() + " (device.networks), " +
                    (link.on ? "has no carrier" : "is switched off"),
                "hosts there cannot use the tunnel",
                link.on ? "see to the cable, the switch or the access point at " + link.name
                        : "ip link set " + link.name + " up"});
}

// Networks of the LAN's interface from which hosts send, and which nobody told the far side of: a
// provider gives another IPv6 prefix now and then.
void checkPrefixes(const Patient& patient, const Link& link, DoctorReport& report) {
  const std::vector<Prefix>& told = patient.config.device.networks;
  if (!takesGlobalV6(patient.config)) return;
  std::set<Prefix> untold;
  for (const LinkAddress& a : link.addresses) {
    bool isTold = std::ranges::any_of(told, [&](const Prefix& p) { return p.contains(a.address); });
    if (isGlobalV6(a) && a.prefixLength < 128 && !isTold)
      untold.insert(networkOf({a.address, a.prefixLength}));
  }
  for (const Prefix& network : untold)
    report.wrong(
        {"lan",
         "hosts at " + link.name + " have addresses of " + network.toString() +
             ", which is not among device.networks",
         "the far side refuses what comes from networks that it does not know",
         "put \"" + network.toString() +
             "\" into device.networks here, and into this gateway's prefixes at the peer"});
}

}  // namespace

void checkLans(const Patient& patient, DoctorReport& report) {
  const Config& config = patient.config;
  if (config.tunnel.mode != TunnelOptions::Mode::kTun) return;
  std::vector<std::string> uplinks = interfacesOf(config.uplinks, patient.table);
  auto isUplink = [&](const Link& link) {
    return std::ranges::find(uplinks, link.name) != uplinks.end();
  };
  std::set<const Link*> inside;
  std::vector<Lan> lans = lansOf(config, patient.table, patient.routes);
  for (const Lan& lan : lans) {
    if (lan.link->up || leadsAlone(lan, lans)) checkLink(lan, report);
    if (lan.isOnLink) inside.insert(lan.link);
  }
  for (const Prefix& network : config.device.networks) {
    if (std::ranges::find(lans, network, &Lan::network) != lans.end() ||
        isBehindRouter(patient, network, inside) || isOfLoopback(patient, network))
      continue;
    report.wrong(
        {"lan",
         network.toString() +
             " (device.networks) is at no interface of this host, and no route leads to it",
         "hosts there cannot use the tunnel",
         "give the LAN's interface an address of it (ip address add ADDRESS/" +
             std::to_string(network.length) + " dev INTERFACE), or correct device.networks"});
  }
  for (const Link* link : inside)
    if (!isUplink(*link)) checkPrefixes(patient, *link, report);
  for (const auto& [index, link] : patient.table.links())
    if (inside.contains(&link) || isUplink(link))
      checkBridge(patient, link, isUplink(link), report);
}

}  // namespace braid
