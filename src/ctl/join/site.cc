#include "ctl/join/site.h"

#include <algorithm>
#include <fstream>
#include <map>

#include "ctl/join/outward_links.h"
#include "gateway/join/address_plan.h"

namespace braid {

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

std::vector<Prefix> findLans(const NetworkTable& table, const std::vector<std::string>& uplinks,
                             const std::string& device) {
  std::vector<Prefix> lans;
  OutwardLinks outward(table);
  for (const auto& [index, link] : table.links()) {
    if (!link.up || link.name == device || !outward.mayBeLan(link) || isIn(uplinks, link.name))
      continue;
    for (const LinkAddress& a : link.addresses) {
      bool isHost = a.prefixLength == 0 || a.prefixLength >= a.address.bits();
      if (isHost || a.scope != kUniverseScope || !a.usable || a.temporary || !isPrivate(a.address))
        continue;
      Prefix lan = networkOf({a.address, a.prefixLength});
      if (!isIn(lans, lan)) lans.push_back(lan);
    }
  }
  return lans;
}

}  // namespace braid
