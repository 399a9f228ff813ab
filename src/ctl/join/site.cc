#include "ctl/join/site.h"

#include <linux/if_arp.h>

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <map>

#include "gateway/join/address_plan.h"

namespace braid {

namespace {

constexpr int kDeepest = 8;  // a VLAN on a bridge with a port that is a VLAN on a bond takes 4

bool isKind(const Link& link, std::initializer_list<std::string_view> kinds) {
  return std::ranges::find(kinds, link.kind) != kinds.end();
}

bool isLikeEthernet(const Link& link) {
  return link.hardware == ARPHRD_ETHER || link.hardware == ARPHRD_INFINIBAND;
}

bool isNic(const Link& link) {
  return isLikeEthernet(link) && isKind(link, {"", "dsa", "ipoib"});
}

}  // namespace

OutwardLinks::OutwardLinks(const NetworkTable& table) : table_(table) {
  for (const auto& [index, link] : table.links()) {
    hasNic_ |= isNic(link);
    bool isUpstream = table.hasDefaultRoute(index, Address::Family::kV4) ||
                      table.hasDefaultRoute(index, Address::Family::kV6);
    if (isUpstream && link.space >= 0) upstream_.insert(link.space);
  }
}

bool OutwardLinks::mayBeLan(const Link& link) const {
  return isLikeEthernet(link) && link.master == 0 && leadsOut(link, 0);
}

bool OutwardLinks::isTunnel(const Link& link) {
  return isKind(link,
                {"tun",    "wireguard", "ovpn",   "ipip",      "ip6tnl", "sit",   "gre",  "gretap",
                 "ip6gre", "ip6gretap", "erspan", "ip6erspan", "vti",    "vti6",  "xfrm", "vxlan",
                 "geneve", "bareudp",   "amt",    "l2tpeth",   "gtp",    "dummy", "ifb"});
}

bool OutwardLinks::leadsOut(const Link& link, int depth) const {
  if (depth == kDeepest) return false;
  if (isNic(link)) return true;
  if (link.space >= 0) return standsForNic(link);
  if (isKind(link, {"vlan", "macsec"})) {
    auto lower = table_.links().find(link.lower);
    return lower != table_.links().end() && leadsOut(lower->second, depth + 1);
  }
  if (!isKind(link, {"bridge", "bond", "team", "hsr", "batadv"})) return false;
  return std::ranges::any_of(table_.links(), [&](const auto& entry) {
    return entry.second.master == static_cast<uint32_t>(link.index) &&
           portLeadsOut(entry.second, depth + 1);
  });
}

bool OutwardLinks::portLeadsOut(const Link& port, int depth) const {
  bool isOfContainer = port.space >= 0 && !upstream_.contains(port.space);
  return !isOfContainer && leadsOut(port, depth);
}

bool OutwardLinks::standsForNic(const Link& link) const {
  return !hasNic_ && isKind(link, {"veth", "macvlan", "ipvlan", "vlan", "netkit"});
}

namespace {

constexpr uint8_t kUniverseScope = 0;  // RT_SCOPE_UNIVERSE

template <typename T>
bool isIn(const std::vector<T>& list, const T& item) {
  return std::ranges::find(list, item) != list.end();
}

}  // namespace

std::vector<std::string> findUplinks(const NetworkTable& table, const std::string& device) {
  std::map<int, uint32_t> metrics;  // the lowest metric of each interface
  for (const DefaultRoute& route : table.defaultRoutes()) {
    auto [known, fresh] = metrics.emplace(route.link, route.metric);
    if (!fresh) known->second = std::min(known->second, route.metric);
  }
  std::vector<std::pair<uint32_t, std::string>> found, tunnels;
  for (const auto& [index, metric] : metrics) {
    auto link = table.links().find(index);
    if (link == table.links().end() || !link->second.up || link->second.name == device) continue;
    (OutwardLinks::isTunnel(link->second) ? tunnels : found)
        .emplace_back(metric, link->second.name);
  }
  if (found.empty()) found = std::move(tunnels);
  std::ranges::sort(found);
  std::vector<std::string> names;
  for (const auto& [metric, name] : found) names.push_back(name);
  return names;
}

bool hasIpv6(const std::string& switchedOff) {
  int off = 1;
  return std::ifstream(switchedOff) >> off && off == 0;
}

JoinAnswer withoutIpv6(JoinAnswer answer) {
  std::erase_if(answer.concentrator, [](const Address& a) { return a.isV6(); });
  std::erase_if(answer.edge, [](const InterfaceAddress& a) { return a.address.isV6(); });
  std::erase_if(answer.networks, [](const Prefix& p) { return p.address.isV6(); });
  return answer;
}

std::string clashText(const JoinAnswer& answer, const NetworkTable& table,
                      const std::string& device) {
  std::vector<Prefix> theirs = answer.networks;
  for (const InterfaceAddress& edge : answer.edge) theirs.push_back(networkOf(edge));
  for (const auto& [index, link] : table.links()) {
    if (link.name == device) continue;
    for (const LinkAddress& a : link.addresses) {
      Prefix here = networkOf({a.address, a.prefixLength});
      auto found = std::ranges::find_if(theirs, [&](const Prefix& network) {
        return here.length > 0 && here.length <= network.length && here.contains(network.address);
      });
      if (found == theirs.end()) continue;
      return "the concentrator's network " + found->toString() + " is in " + here.toString() +
             " of " + link.name +
             " here, too: give one side other addresses, or invite with other networks ('braidctl "
             "invite "
             "NAME --network NETWORK')";
    }
  }
  return {};
}

namespace {

void addLans(const Link& link, std::vector<Prefix>& lans) {
  for (const LinkAddress& a : link.addresses) {
    bool isHost = a.prefixLength == 0 || a.prefixLength >= a.address.bits();
    if (isHost || a.scope != kUniverseScope || !a.usable || a.temporary || !isPrivate(a.address))
      continue;
    Prefix lan = networkOf({a.address, a.prefixLength});
    if (!isIn(lans, lan)) lans.push_back(lan);
  }
}

}  // namespace

std::vector<DarkLan> findDarkLans(const NetworkTable& table,
                                  const std::vector<std::string>& uplinks,
                                  const std::string& device) {
  std::vector<DarkLan> out;
  OutwardLinks outward(table);
  for (const auto& [index, link] : table.links()) {
    if (link.up || link.name == device || !outward.mayBeLan(link) || isIn(uplinks, link.name))
      continue;
    DarkLan lan{link.name, {}};
    addLans(link, lan.networks);
    if (link.on || !lan.networks.empty()) out.push_back(std::move(lan));
  }
  return out;
}

std::vector<Prefix> findLans(const NetworkTable& table, const std::vector<std::string>& uplinks,
                             const std::string& device) {
  std::vector<Prefix> lans;
  OutwardLinks outward(table);
  for (const auto& [index, link] : table.links()) {
    if (link.up && link.name != device && outward.mayBeLan(link) && !isIn(uplinks, link.name))
      addLans(link, lans);
  }
  return lans;
}

}  // namespace braid
