#include "gateway/network/route_plan.h"

#include <net/if.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "gateway/config/address_ranges.h"
#include "gateway/join/address_plan.h"
#include "inet/ip.h"

namespace braid {

namespace {

using Family = Address::Family;
using Kind = RouteSpec::Kind;

constexpr uint16_t kDhcpClient = 68, kDhcpServer = 67, kDns = 53;
constexpr Family kBothFamilies[] = {Family::kV4, Family::kV6};
// Networks that may be those of a LAN whose addresses are not known yet, because the guard is made
// before the host's network, or behind a router or tunnel of the LAN: private ones (RFC 1918,
// RFC 6598, RFC 4193).
constexpr const char* kMaybeHere[] = {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16",
                                      "100.64.0.0/10", "fc00::/7"};
// What a LAN's hosts need of each other and of this host: link-local, broadcast and multicast.
constexpr const char* kAlwaysHere[] = {"169.254.0.0/16", "224.0.0.0/4", "255.255.255.255",
                                       "fe80::/10", "ff00::/8"};

bool isAmong(const std::vector<Prefix>& list, const Prefix& item) {
  return std::ranges::find(list, item) != list.end();
}

bool isOfFamily(const Prefix& p, Family family) {
  return p.address.family == family;
}

/// Whether `outer` holds all of `inner`; a network holds itself.
bool holds(const Prefix& outer, const Prefix& inner) {
  return outer.length <= inner.length && outer.contains(inner.address);
}

bool isHeldByOne(const std::vector<Prefix>& list, const Prefix& inner) {
  return std::ranges::any_of(list, [&](const Prefix& outer) { return holds(outer, inner); });
}

bool isAmong(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

/// The networks at one of the host's interfaces.
void addNetworksOf(const Link& link, std::vector<Prefix>& out) {
  for (const LinkAddress& a : link.addresses) {
    Prefix network = networkOf({a.address, a.prefixLength});
    bool isLinkLocal = a.address.isV6() && a.scope != 0;
    if (network.length > 0 && !isLinkLocal && !isAmong(out, network)) out.push_back(network);
  }
}

RouteSpec routeOf(Kind kind, const Prefix& destination, uint32_t table) {
  RouteSpec out;
  out.kind = kind;
  out.destination = destination;
  out.table = table;
  return out;
}

RuleSpec ruleOf(Family family, uint32_t priority, uint32_t table) {
  RuleSpec out;
  out.family = family;
  out.priority = priority;
  out.table = table;
  return out;
}

RuleSpec exceptionFor(Family family, uint8_t protocol, uint16_t from, uint16_t to,
                      const HostNumbers& numbers) {
  RuleSpec out = ruleOf(family, numbers.exceptionRule(), kMainTable);
  out.localOnly = true;
  out.protocol = protocol;
  out.sourcePort = from;
  out.destinationPort = to;
  return out;
}

bool usesNames(const Config& config) {
  return std::ranges::any_of(config.peers, [](const PeerConfig& p) { return !p.hosts.empty(); });
}

/// What this host sends past the tunnel, by its main table. What a DHCP client sends to renew its
/// lease leaves by the uplink. A program of this host that is asked for a peer's name must be able
/// to ask others while the tunnel cannot carry the question. A guard, which may outlive the daemon,
/// drops such questions all the same.
void addExceptions(const Config& config, const RouteSituation& situation, Family family,
                   RoutePlan& out) {
  const HostNumbers& numbers = situation.numbers;
  for (const MarkMatch& mark : config.device.bypassMarks) {
    RuleSpec rule = exceptionFor(family, 0, 0, 0, numbers);
    rule.mark = mark.value;
    rule.markMask = mark.mask;
    out.rules.push_back(std::move(rule));
  }
  if (config.uplinks.empty()) return;
  if (family == Family::kV4)
    out.rules.push_back(exceptionFor(family, ip::kUdp, kDhcpClient, kDhcpServer, numbers));
  if (!usesNames(config) || !situation.asksHere || situation.peerUp) return;
  for (uint8_t protocol : {ip::kUdp, ip::kTcp})
    out.rules.push_back(exceptionFor(family, protocol, 0, kDns, numbers));
}

/// The destinations that may be reached by the tunnel only. When all of one family is, so is all of
/// the other.
std::vector<Prefix> guardedNetworks(const Config& config) {
  std::vector<Prefix> out = config.device.routes;
  std::string left = familyLeftOut(out);
  if (!left.empty()) out.push_back(*Prefix::parse(left == "IPv6" ? "::/0" : "0.0.0.0/0"));
  return out;
}

/// Adds those of the networks that are within guarded ones, without being guarded themselves.
template <typename Texts>
void addWithin(const std::vector<Prefix>& guarded, const Texts& texts, std::vector<Prefix>& out) {
  for (const char* text : texts) {
    Prefix network = *Prefix::parse(text);
    if (isHeldByOne(guarded, network) && !isAmong(guarded, network) && !isAmong(out, network))
      out.push_back(network);
  }
}

/// The networks within guarded ones that are on this side for sure.
std::vector<Prefix> spared(const std::vector<Prefix>& guarded, const std::vector<Prefix>& lans) {
  std::vector<Prefix> out;
  for (const Prefix& lan : lans)
    if (isHeldByOne(guarded, lan)) out.push_back(lan);
  addWithin(guarded, kAlwaysHere, out);
  return out;
}

/// The networks of `here` that may be reached by this interface. Packets to a LAN whose interface
/// is down follow a default route: of a family of which the interface has one, only those at it.
std::vector<Prefix> hereBy(const Link& link, const NetworkTable& host,
                           const std::vector<Prefix>& guarded, const std::vector<Prefix>& here) {
  std::vector<Prefix> near, out;
  addNetworksOf(link, near);
  near = spared(guarded, near);
  for (Family family : kBothFamilies)
    for (const Prefix& network : host.hasDefaultRoute(link.index, family) ? near : here)
      if (isOfFamily(network, family)) out.push_back(network);
  return out;
}

/// The addresses whose longest prefix among both lists is in `here`.
std::vector<AddressRange> rangesWithin(const std::vector<Prefix>& guarded,
                                       const std::vector<Prefix>& here) {
  auto longest = [](const std::vector<Prefix>& list, const Address& address) {
    int length = -1;
    for (const Prefix& p : list)
      if (p.contains(address)) length = std::max(length, static_cast<int>(p.length));
    return length;
  };
  std::vector<Prefix> all = guarded;
  all.insert(all.end(), here.begin(), here.end());
  std::vector<AddressRange> out;
  for (const AddressRange& range : rangesOf(std::move(all)))
    if (longest(here, range.first) >= longest(guarded, range.first)) {
      if (longest(here, range.first) >= 0) out.push_back(range);
    }
  return joined(out);
}

/// Tells the uplinks, and what else may lead past the tunnel, from the LAN's interfaces, also for
/// the time in which no daemon is there to follow. An uplink that is there may be renamed, so its
/// index counts, too. One that comes has an index that none of those has that are there, and may
/// have any name. `isEarly`: no daemon has followed the host yet, so a configured name that no
/// interface has may become a further name of one that is there, and the host may rename those that
/// are there.
void addInterfaces(const Config& config, const NetworkTable& host, const std::string& device,
                   bool isEarly, FilterRules& out) {
  out.uplinks = interfacesOf(config.uplinks, host);
  std::erase(out.uplinks, "");
  bool mayCome = false, mayBeThere = false;
  for (const UplinkConfig& uplink : config.uplinks) {
    const Link* link = host.find(uplink.selector());
    if (link) out.uplinkIndices.push_back(static_cast<uint32_t>(link->index));
    mayCome |= !link || link->name != uplink.interface;
    mayBeThere |= isEarly && !link && !uplink.interface.empty();
  }
  for (const Link* link : lanLinks(config, host, device))
    if (host.hasDefaultRoute(link->index))
      out.outward.push_back({link->name, static_cast<uint32_t>(link->index)});
  if (!mayCome) return;
  out.known.emplace();
  for (const auto& [index, link] : host.links())
    if (link.master == 0 && !mayBeThere)
      out.known->push_back({static_cast<uint32_t>(index), isEarly ? "" : link.name});
}

void addGuard(const Config& config, const NetworkTable& host, const RouteSituation& situation,
              bool isEarly, RoutePlan& out) {
  const HostNumbers& numbers = situation.numbers;
  FilterRules& filter = out.filter;
  std::vector<Prefix> guarded = guardedNetworks(config),
                      lans = lanNetworks(config, host, situation.device), maybe;
  addInterfaces(config, host, situation.device, isEarly, filter);
  for (const Prefix& network : situation.formerLans)
    if (!isAmong(lans, network)) lans.push_back(network);
  std::vector<Prefix> here = spared(guarded, lans);
  addWithin(guarded, kMaybeHere, maybe);
  filter.here = rangesWithin(guarded, here);
  for (FilterRules::Outward& way : filter.outward) {
    const Link& link = host.links().at(static_cast<int>(way.index));
    way.here = rangesWithin(guarded, hereBy(link, host, guarded, here));
  }
  filter.maybeHere = rangesWithin(guarded, maybe);
  // The routes do not know by which interface a packet would leave.
  if (filter.outward.empty() && !filter.known) addWithin(guarded, kMaybeHere, here);
  uint32_t table = HostNumbers::guardTable(situation.device);
  size_t routes = out.routes.size(), rules = out.rules.size();
  for (const Prefix& network : guarded)
    if (!isAmong(here, network)) out.routes.push_back(routeOf(Kind::kUnreachable, network, table));
  for (const Prefix& network : here) out.routes.push_back(routeOf(Kind::kThrow, network, table));
  for (Family family : kBothFamilies) {
    if (std::ranges::none_of(guarded, [&](const Prefix& p) { return isOfFamily(p, family); }))
      continue;
    RuleSpec pass = ruleOf(family, numbers.passRule(), kMainTable);
    pass.mark = numbers.outsideMark();
    pass.markMask = numbers.outsideMask();
    out.rules.push_back(pass);
    // Not for what this host sends: its replies by an uplink get their mark only after a first
    // look-up, which must find a route. The packet filter guards the rest of it.
    RuleSpec guard = ruleOf(family, numbers.guardRule(), table);
    guard.localOnly = guard.inverted = true;
    out.rules.push_back(guard);
  }
  for (; routes < out.routes.size(); ++routes) out.routes[routes].stays = true;
  for (; rules < out.rules.size(); ++rules) out.rules[rules].stays = true;
  filter.guard = true;
  filter.outside = numbers.outsideMark();
  filter.outsideMask = numbers.outsideMask();
  filter.bypass = config.device.bypassMarks;
  filter.guarded = joined(rangesOf(guarded));
  std::erase_if(guarded, [](const Prefix& p) { return p.isEverything(); });
  filter.ownOnly = joined(rangesOf(std::move(guarded)));
}

void addReplies(const RouteSituation& situation, RoutePlan& out) {
  out.filter.device = situation.device;
  out.filter.markMask = situation.numbers.markMask;
  out.filter.replies = situation.replies;
  out.filter.renewal = situation.numbers.ownMark();
}

/// Leaves to other programs of this host what they take over, where the routes lead to more than a
/// few private networks.
void addLocal(const Config& config, const RouteSituation& situation, Family family,
              RoutePlan& out) {
  out.filter.localMark = situation.numbers.interceptedMark();
  if (config.tunnel.streams.on) return;  // InterceptPolicy has the rest
  LocalDelivery delivery = localDelivery(family, situation.device, situation.numbers);
  out.routes.push_back(std::move(delivery.route));
  out.rules.push_back(std::move(delivery.rule));
}

RoutePlan guardPlan(const Config& config, const NetworkTable& host, const RouteSituation& situation,
                    bool isEarly) {
  RoutePlan out;
  if (config.device.whenDown != DeviceConfig::WhenDown::kBlock || config.device.routes.empty())
    return out;
  addGuard(config, host, situation, isEarly, out);
  addReplies(situation, out);
  return out;
}

}  // namespace

std::vector<std::string> interfacesOf(const std::vector<UplinkConfig>& uplinks,
                                      const NetworkTable& host) {
  std::vector<std::string> out;
  for (const UplinkConfig& uplink : uplinks) {
    const Link* link = host.find(uplink.selector());
    bool mayCome = uplink.interface.size() < IFNAMSIZ;  // a longer one is a further name
    out.push_back(link ? link->name : mayCome ? uplink.interface : "");
  }
  return out;
}

std::vector<const Link*> lanLinks(const Config& config, const NetworkTable& host,
                                  const std::string& device) {
  std::vector<const Link*> out;
  std::vector<std::string> uplinks = interfacesOf(config.uplinks, host);
  for (const auto& [index, link] : host.links())
    if (link.name != device && link.name != "lo" && !isAmong(uplinks, link.name))
      out.push_back(&link);
  return out;
}

std::vector<Prefix> lanNetworks(const Config& config, const NetworkTable& host,
                                const std::string& device) {
  std::vector<Prefix> out;
  for (const Prefix& network : config.device.networks)
    if (network.length > 0) out.push_back(network);
  for (const Link* link : lanLinks(config, host, device)) addNetworksOf(*link, out);
  return out;
}

std::vector<Prefix> lansForGuard(const Config& config, const NetworkTable& host,
                                 const std::string& device) {
  std::vector<Prefix> out;
  if (std::ranges::any_of(config.uplinks,
                          [&](const UplinkConfig& u) { return !host.find(u.selector()); }))
    return out;
  for (const Link* link : lanLinks(config, host, device)) {
    std::vector<Prefix> near;
    addNetworksOf(*link, near);
    for (const Prefix& network : near)
      if (!host.hasDefaultRoute(link->index, network.address.family) && !isAmong(out, network))
        out.push_back(network);
  }
  return out;
}

std::vector<Prefix> ownNetworks(const Config& config, const NetworkTable& host,
                                const std::string& device) {
  std::vector<Prefix> out = config.device.networks;
  for (const InterfaceAddress& a : config.device.addresses)
    out.push_back({a.address, a.address.bits()});
  if (config.tunnel.mode != TunnelOptions::Mode::kTun) return out;
  static const SpecialAddresses kSpecial;
  for (const Prefix& network : lanNetworks(config, host, device)) {
    std::optional<SpecialRange> range = kSpecial.find(network.address);
    bool isSpecial = range && network.length >= range->length;
    bool isPeers = std::ranges::any_of(config.peers, [&](const PeerConfig& peer) {
      return isAmong(peer.options.prefixes, network);
    });
    if (!isSpecial && !isPeers && !isAmong(out, network)) out.push_back(network);
  }
  return out;
}

bool endangersReplies(const Config& config, const NetworkTable& host) {
  std::vector<Prefix> near;
  std::vector<std::string> uplinks = interfacesOf(config.uplinks, host);
  for (const auto& [index, link] : host.links())
    if (isAmong(uplinks, link.name)) addNetworksOf(link, near);
  return !config.uplinks.empty() &&
         std::ranges::any_of(config.device.routes, [&](const Prefix& route) {
           return !isPrivate(route) || std::ranges::any_of(near, [&](const Prefix& network) {
             return network.overlaps(route);
           });
         });
}

RoutePlan planGuard(const Config& config, const NetworkTable& host,
                    const RouteSituation& situation) {
  return guardPlan(config, host, situation, true);
}

RoutePlan planRoutes(const Config& config, const NetworkTable& host,
                     const RouteSituation& situation) {
  RoutePlan out = guardPlan(config, host, situation, false);
  const std::vector<Prefix>& wanted = config.device.routes;
  const HostNumbers& numbers = situation.numbers;
  std::vector<Prefix> lans = lanNetworks(config, host, situation.device);
  for (const Prefix& network : wanted) {
    if (isAmong(lans, network)) continue;
    RouteSpec route = routeOf(Kind::kUnicast, network, numbers.tunnelTable());
    route.device = situation.device;
    out.routes.push_back(std::move(route));
  }
  for (const Prefix& lan : lans)
    if (isHeldByOne(wanted, lan))
      out.routes.push_back(routeOf(Kind::kThrow, lan, numbers.tunnelTable()));
  bool direct = config.device.whenDown == DeviceConfig::WhenDown::kDirect && !situation.peerUp;
  for (Family family : kBothFamilies) {
    bool isMeant =
        std::ranges::any_of(wanted, [&](const Prefix& p) { return isOfFamily(p, family); });
    if (!isMeant || direct) continue;
    addExceptions(config, situation, family, out);
    if (!situation.replies.empty()) addLocal(config, situation, family, out);
    bool isWide = std::ranges::any_of(
        wanted, [&](const Prefix& p) { return isOfFamily(p, family) && p.isEverything(); });
    RuleSpec tunnel = ruleOf(family, numbers.tunnelRule(isWide), numbers.tunnelTable());
    tunnel.mark = numbers.outsideMark();
    tunnel.markMask = numbers.outsideMask();
    tunnel.inverted = true;
    out.rules.push_back(std::move(tunnel));
  }
  if (!wanted.empty()) addReplies(situation, out);
  return out;
}

}  // namespace braid
