#include "host/network.h"

#include <algorithm>
#include <cstdio>

namespace braid {

namespace {

std::string where(const Address& via, const std::string& device, uint32_t table, uint32_t metric) {
  std::string out;
  if (via.bits()) out += " via " + via.toString();
  if (!device.empty()) out += " dev " + device;
  if (table != kMainTable) out += " table " + std::to_string(table);
  if (metric) out += " metric " + std::to_string(metric);
  return out;
}

}  // namespace

std::string hexadecimal(uint32_t value) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%x", value);
  return text;
}

std::string MarkMatch::toString() const {
  return hexadecimal(value) + (mask == UINT32_MAX ? "" : "/" + hexadecimal(mask));
}

std::string InterfaceAddress::toString() const {
  return address.toString() + "/" + std::to_string(length);
}

std::string LinkSelector::toString() const {
  if (!mac.empty()) return "interface with MAC " + mac;
  if (!path.empty()) return "interface at " + path;
  return "interface " + name;
}

std::string RouteSpec::toString() const {
  constexpr const char* kKinds[] = {"", "local ", "throw ", "unreachable "};
  bool plain = kind == Kind::kUnicast && destination.length == 0 && destination.address.isV4();
  return kKinds[static_cast<size_t>(kind)] + std::string("route ") +
         (plain ? "default" : destination.toString()) + where(via, device, table, metric);
}

std::string RuleSpec::toString() const {
  std::string out = family == Address::Family::kV4 ? "IPv4 rule" : "IPv6 rule";
  out += " " + std::to_string(priority) + ":";
  if (inverted) out += " not";
  if (from.length) out += " from " + from.toString();
  if (!outInterface.empty()) out += " oif " + outInterface;
  if (localOnly) out += " iif lo";
  if (mark) out += " fwmark " + MarkMatch{mark, markMask}.toString();
  if (protocol) out += " ipproto " + std::to_string(protocol);
  if (sourcePort) out += " sport " + std::to_string(sourcePort);
  if (destinationPort) out += " dport " + std::to_string(destinationPort);
  out += " lookup " + std::to_string(table);
  if (suppressPrefixLength)
    out += " suppress_prefixlength " + std::to_string(*suppressPrefixLength);
  return out;
}

LocalDelivery localDelivery(Address::Family family, const std::string& device,
                            const HostNumbers& numbers) {
  LocalDelivery out;
  out.route.destination.address.family = family;
  out.route.device = device;
  out.route.table = numbers.interceptedTable();
  out.route.kind = RouteSpec::Kind::kLocal;
  out.rule.family = family;
  out.rule.priority = numbers.interceptedRule();
  out.rule.table = out.route.table;
  out.rule.mark = numbers.interceptedMark();
  out.rule.markMask = numbers.markMask;
  return out;
}

namespace {

using Kind = NetworkChange::Kind;

std::string text(const LinkAddress& a) {
  return a.address.toString() + "/" + std::to_string(a.prefixLength);
}

std::string text(const DefaultRoute& r) {
  std::string out = r.family == Address::Family::kV4 ? "IPv4 default route" : "IPv6 default route";
  return r.via.bits() ? out + " via " + r.via.toString() : out;
}

void compareLinks(const Link& was, const Link& is, std::vector<NetworkChange>& out) {
  if (was.name != is.name)
    out.push_back({Kind::kLinkRenamed, is.index, was.name + " is now " + is.name});
  if (was.up != is.up) {
    out.push_back({is.up ? Kind::kLinkUp : Kind::kLinkDown, is.index,
                   is.name + (is.up ? " is up" : " is down")});
  }
  if (was.mtu != is.mtu)
    out.push_back({Kind::kMtu, is.index, is.name + " has MTU " + std::to_string(is.mtu)});
  for (const LinkAddress& a : was.addresses) {
    if (!is.addresses.contains(a))
      out.push_back({Kind::kAddressGone, is.index, is.name + " lost " + text(a)});
  }
  for (const LinkAddress& a : is.addresses) {
    if (!was.addresses.contains(a))
      out.push_back({Kind::kAddressAdded, is.index, is.name + " has " + text(a)});
  }
}

}  // namespace

void NetworkTable::removeLink(int index) {
  links_.erase(index);
  std::erase_if(routes_, [&](const DefaultRoute& r) { return r.link == index; });
  std::erase_if(local_, [&](const LocalNetwork& n) { return n.link == index; });
}

void NetworkTable::removeDefaultRoutes(Address::Family family, uint32_t metric) {
  std::erase_if(routes_,
                [&](const DefaultRoute& r) { return r.family == family && r.metric == metric; });
}

void NetworkTable::removeLocalNetworks(const LocalNetwork& like) {
  std::erase_if(local_, [&](const LocalNetwork& n) {
    return n.network == like.network && n.table == like.table && n.metric == like.metric;
  });
}

bool NetworkTable::isOwn(const Address& address) const {
  auto has = [&](const LinkAddress& own) { return own.address == address; };
  auto contains = [&](const LocalNetwork& own) { return own.network.contains(address); };
  return std::ranges::any_of(local_, contains) ||
         std::ranges::any_of(links_, [&](const auto& link) {
           return std::ranges::any_of(link.second.addresses, has);
         });
}

void NetworkTable::continueFrom(const NetworkTable& before) {
  for (auto& [index, link] : links_) {
    auto was = before.links_.find(index);
    if (was != before.links_.end()) link.switchedOff += was->second.switchedOff + 1;
  }
  losses_ += before.losses_ + 1;
}

const Link* NetworkTable::find(const std::string& name) const {
  auto at = std::find_if(links_.begin(), links_.end(),
                         [&](const auto& l) { return l.second.name == name; });
  return at == links_.end() ? nullptr : &at->second;
}

const Link* NetworkTable::find(const LinkSelector& selector, std::string* several) const {
  if (selector.mac.empty() && selector.path.empty()) {
    if (const Link* link = find(selector.name)) return link;
  }
  // How well an interface fits; 0: not at all.
  auto fits = [&](const Link& link) {
    if (!selector.path.empty()) return link.path == selector.path ? 1 : 0;
    if (selector.mac.empty()) return link.altnames.contains(selector.name) ? 1 : 0;
    bool isDevice = link.kind.empty() && link.lower == 0;
    if (link.ownMac == selector.mac) return isDevice ? 4 : 2;
    if (link.mac == selector.mac) return isDevice || link.kind == "veth" ? 3 : 1;
    return 0;
  };
  const Link* best = nullptr;
  int bestFit = 0;
  std::string names;
  for (const auto& [index, link] : links_) {
    int fit = fits(link);
    if (fit == 0 || fit < bestFit) continue;
    if (fit > bestFit) names.clear();
    names += (names.empty() ? "" : ", ") + link.name;
    best = fit == bestFit ? nullptr : &link;
    bestFit = fit;
  }
  if (several && bestFit > 0 && !best) *several = names;
  return best;
}

bool NetworkTable::hasDefaultRoute(int link, Address::Family family) const {
  return std::any_of(routes_.begin(), routes_.end(),
                     [&](const DefaultRoute& r) { return r.link == link && r.family == family; });
}

std::vector<NetworkChange> NetworkTable::changesSince(const NetworkTable& before) const {
  std::vector<NetworkChange> out;
  for (const auto& [index, was] : before.links_) {
    if (!links_.contains(index)) out.push_back({Kind::kLinkGone, index, was.name + " is gone"});
  }
  for (const auto& [index, is] : links_) {
    auto was = before.links_.find(index);
    if (was == before.links_.end()) out.push_back({Kind::kLinkAdded, index, is.name + " appeared"});
    Link fresh;
    fresh.index = index;
    fresh.name = is.name;
    fresh.mtu = is.mtu;
    compareLinks(was == before.links_.end() ? fresh : was->second, is, out);
  }
  auto name = [](const NetworkTable& t, int link) {
    auto at = t.links_.find(link);
    return at == t.links_.end() ? "interface " + std::to_string(link) : at->second.name;
  };
  for (const DefaultRoute& r : before.routes_) {
    if (!routes_.contains(r))
      out.push_back({Kind::kRouteGone, r.link, name(before, r.link) + " lost its " + text(r)});
  }
  for (const DefaultRoute& r : routes_) {
    if (!before.routes_.contains(r))
      out.push_back({Kind::kRouteAdded, r.link, name(*this, r.link) + " has an " + text(r)});
  }
  if (losses_ != before.losses_)
    out.push_back({Kind::kLoss, 0, "addresses, routes or rules of ours may be gone"});
  return out;
}

}  // namespace braid
