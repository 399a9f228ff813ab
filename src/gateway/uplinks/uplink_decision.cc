#include "gateway/uplinks/uplink_decision.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace braid {

namespace {

using Family = Address::Family;

constexpr uint8_t kLinkScope = 253;  // RT_SCOPE_LINK

bool uniqueLocal(const Address& a) {
  return a.isV6() && (a.bytes[0] & 0xfe) == 0xfc;
}  // RFC 4193

// Smaller is better. The address in use is preferred among equals, but not when it is deprecated
// and another is not.
// An address whose paths were all dead comes after all others; of several such the one that was
// given up first.
auto rank(const LinkAddress& a, const Address& current, const DeadSources& dead) {
  auto at = dead.find(a.address);
  return std::tuple(at == dead.end() ? Time::min() : at->second, a.deprecated, a.address != current,
                    uniqueLocal(a.address), a.temporary, a.address);
}

Address chooseSource(const UplinkConfig& config, const Link& link, Family family,
                     const Address& current, const DeadSources& dead) {
  const LinkAddress* best = nullptr;
  for (const LinkAddress& a : link.addresses) {
    if (!mayBeSource(config, a, family)) continue;
    if (!best || rank(a, current, dead) < rank(*best, current, dead)) best = &a;
  }
  return best ? best->address : Address{};
}

Prefix defaultPrefix(Family family) {
  Prefix p;
  p.address.family = family;
  return p;
}

// The next hop of the interface's best default route; nullopt: it has none.
std::optional<Address> ownGateway(const NetworkTable& table, int link, Family family) {
  std::optional<DefaultRoute> best;
  for (const DefaultRoute& route : table.defaultRoutes()) {
    bool isOwn = route.link == link && route.family == family;
    if (isOwn && (!best || route.metric < best->metric)) best = route;
  }
  return best ? std::optional(best->via) : std::nullopt;
}

// The uplink's table has the one route for everything else than what the main table has for it.
void routeBy(const UplinkPlace& place, Family family, const Address& gateway, UplinkDecision& out) {
  RouteSpec route;
  route.destination = defaultPrefix(family);
  route.device = out.interface;
  route.via = gateway;
  route.table = place.numbers.uplinkTable(place.number);
  route.onLink = gateway.bits() != 0;
  out.routes.push_back(std::move(route));
}

// What matches `like` first uses the main table's routes, except default routes, and then the
// uplink's table.
void steer(const UplinkPlace& place, RuleSpec like, UplinkDecision& out) {
  like.table = kMainTable;
  like.suppressPrefixLength = 0;
  out.rules.push_back(like);
  ++like.priority;
  like.table = place.numbers.uplinkTable(place.number);
  like.suppressPrefixLength.reset();
  out.rules.push_back(std::move(like));
}

void decideRouting(const UplinkConfig& config, const UplinkPlace& place, const NetworkTable& table,
                   Family family, UplinkDecision& out) {
  std::optional<Address> gateway;
  bool given = config.gateway == UplinkConfig::Gateway::kAddress;
  for (const Address& g : config.gateways)
    if (given && g.family == family) gateway = g;
  given = gateway.has_value();
  if (!given && place.replies) gateway = ownGateway(table, out.link, family);
  if (!gateway) return;
  routeBy(place, family, *gateway, out);
  RuleSpec rule;
  rule.family = family;
  if (given) {
    rule.priority = place.numbers.uplinkRule(place.number);
    rule.outInterface = out.interface;
    steer(place, rule, out);
  }
  if (!place.replies) return;
  rule.priority = place.numbers.replyRule(place.number);
  rule.outInterface.clear();
  rule.mark = place.numbers.replyMark(place.number);
  rule.markMask = place.numbers.markMask;
  steer(place, rule, out);
}

}  // namespace

bool mayBeSource(const UplinkConfig& config, const LinkAddress& a, Family family) {
  if (a.address.family != family || !a.usable) return false;
  if (config.sources.empty()) return a.scope < kLinkScope;
  return std::find(config.sources.begin(), config.sources.end(), a.address) != config.sources.end();
}

UplinkDecision decideUplink(const UplinkConfig& config, const UplinkPlace& place,
                            const NetworkTable& table, const Address& v4, const Address& v6,
                            const DeadSources& dead) {
  UplinkDecision out;
  std::string several;
  const Link* link = table.find(config.selector(), &several);
  if (!link) {
    out.reason = several.empty() ? "there is no " + config.selector().toString() +
                                       "; plug it in, or name another one ('ip link' lists them)"
                                 : "more than one " + config.selector().toString() + " (" +
                                       several + "); name it by `path`, where it is plugged in";
    return out;
  }
  out.link = link->index;
  out.interface = link->name;
  out.v4 = chooseSource(config, *link, Family::kV4, v4, dead);
  out.v6 = chooseSource(config, *link, Family::kV6, v6, dead);
  if (!link->up) {
    out.reason = "the link " + out.interface + " is down; " +
                 (link->on ? "look at its cable, modem or radio: it has no carrier"
                           : "switch it on: ip link set " + out.interface + " up");
    return out;
  }
  if (!out.v4.bits() && !out.v6.bits()) {
    out.reason = config.sources.empty()
                     ? out.interface +
                           " has no usable address; its DHCP client or network "
                           "manager must give it one"
                     : out.interface +
                           " does not have the configured source address; correct "
                           "`source`, or leave it out";
    return out;
  }
  out.up = true;
  bool missing = false;
  for (Family family : {Family::kV4, Family::kV6}) {
    if (!out.source(family).bits()) continue;
    decideRouting(config, place, table, family, out);
    missing |= family == Family::kV4 && !table.hasDefaultRoute(link->index, family);
  }
  if (config.gateway == UplinkConfig::Gateway::kAuto && missing) {
    out.reason = out.interface +
                 " has no IPv4 default route: only peers on its own network can be reached; " +
                 "set `gateway` to the router's address";
  }
  return out;
}

}  // namespace braid
