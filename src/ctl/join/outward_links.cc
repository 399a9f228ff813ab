#include "ctl/join/outward_links.h"

#include <linux/if_arp.h>

#include <algorithm>
#include <initializer_list>

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

}  // namespace braid
