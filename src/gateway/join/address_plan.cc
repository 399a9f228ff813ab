#include "gateway/join/address_plan.h"

#include <algorithm>

#include "gateway/join/invitation.h"
#include "inet/addresses.h"

namespace braid {

namespace {

// Most addresses that are tried to find a free one: more than the largest number of peers.
constexpr unsigned kMostTries = 4096;

Prefix mustParse(std::string_view text) {
  return Prefix::parse(text).value_or(Prefix{});
}

// Moves to the next address; false: there is none.
bool step(Address& address) {
  for (size_t i = address.bits() / 8; i-- > 0;) {
    if (++address.bytes[i] != 0) return true;
  }
  return false;
}

bool isBroadcast(const Address& address, const Prefix& network) {
  if (!address.isV4() || network.length > 30) return false;
  Address next = address;
  return !step(next) || !network.contains(next);
}

bool isTaken(const Address& address, const Config& config, std::string_view name) {
  auto holds = [&](const Prefix& prefix) {
    return !prefix.isEverything() && prefix.contains(address);
  };
  bool own = std::ranges::any_of(config.device.addresses,
                                 [&](const InterfaceAddress& a) { return a.address == address; });
  return own || std::ranges::any_of(config.peers, [&](const PeerConfig& peer) {
           return peer.options.name != name && std::ranges::any_of(peer.options.prefixes, holds);
         });
}

// The lowest free address after the network's own; unset: there is none.
Address freeIn(const Prefix& network, const Config& config, std::string_view name) {
  Address at = network.address;
  for (unsigned tries = 0; tries < kMostTries && step(at) && network.contains(at); ++tries) {
    if (!isBroadcast(at, network) && !isTaken(at, config, name)) return at;
  }
  return {};
}

}  // namespace

Prefix networkOf(const InterfaceAddress& address) {
  return mustParse(address.toString());
}

std::variant<std::vector<InterfaceAddress>, std::string> freeAddresses(const Config& config,
                                                                       std::string_view name) {
  std::vector<InterfaceAddress> out;
  for (Address::Family family : {Address::Family::kV4, Address::Family::kV6}) {
    for (const InterfaceAddress& own : config.device.addresses) {
      if (own.address.family != family) continue;
      Address found = freeIn(networkOf(own), config, name);
      if (!found.bits()) continue;
      out.push_back({found, own.length});
      break;
    }
  }
  if (!out.empty()) return out;
  return std::string(
      "device.addresses has no network with a free address for another gateway; give it a wider "
      "one, such as "
      "10.99.0.1/24");
}

std::vector<Prefix> connectedNetworks(const NetworkTable& table, const std::string& device) {
  std::vector<Prefix> out;
  for (const auto& [index, link] : table.links()) {
    if (link.name == device) continue;
    for (const LinkAddress& a : link.addresses)
      out.push_back(networkOf({a.address, a.prefixLength}));
  }
  return out;
}

std::vector<Prefix> networksOfHost(const NetworkTable& table, HostNetwork& network,
                                   const std::string& device) {
  std::vector<Prefix> out = connectedNetworks(table, device),
                      routed = network.networksElsewhere(device);
  out.insert(out.end(), routed.begin(), routed.end());
  return out;
}

std::string refuseNetworks(const std::vector<Prefix>& wanted, const std::vector<Prefix>& offered,
                           const std::vector<Prefix>& reached, const Config& config,
                           std::string_view name) {
  const std::string remedy = "; name other networks with --network, or none";
  const SpecialAddresses special;
  for (const Prefix& network : wanted) {
    auto clashes = [&](const Prefix& other) { return network.overlaps(other); };
    std::string text = "the network " + network.toString() + " ";
    if (network.length == 0)
      return text + "is everything, and cannot be behind one gateway" + remedy;
    if (special.overlap(network))
      return text + "has addresses that are no hosts' (a link's, a cloud's, nobody's)" + remedy;
    if (!isPrivate(network))
      return text +
             "is not private; the concentrator's operator may add it to the gateway's file in "
             "peers-folder" +
             remedy;
    if (auto found = std::ranges::find_if(reached, clashes); found != reached.end())
      return text + "overlaps " + found->toString() +
             ", which the concentrator itself is in or has a route to" + remedy;
    for (const InterfaceAddress& own : config.device.addresses) {
      if (clashes(networkOf(own)))
        return text + "overlaps the tunnel's own " + networkOf(own).toString() + remedy;
    }
    for (const std::vector<Prefix>* list : {&config.device.networks, &offered}) {
      auto found = std::ranges::find_if(
          *list, [&](const Prefix& p) { return !p.isEverything() && clashes(p); });
      if (found != list->end())
        return text + "overlaps " + found->toString() + " behind the concentrator" + remedy;
    }
    for (const PeerConfig& peer : config.peers) {
      if (peer.options.name == name) continue;
      auto found = std::ranges::find_if(peer.options.prefixes, clashes);
      if (found != peer.options.prefixes.end())
        return text + "overlaps " + found->toString() + " of the gateway " + peer.options.name +
               remedy;
    }
    if (std::ranges::count_if(wanted, clashes) > 1)
      return text + "overlaps another of this gateway" + remedy;
  }
  return {};
}

namespace {

constexpr uint8_t kUniverse = 0;  // RT_SCOPE_UNIVERSE

bool isAny(const Address& address) {
  return std::ranges::all_of(address.bytes, [](uint8_t b) { return b == 0; });
}

std::vector<Address> ownAddresses(Address::Family family, const NetworkTable& table) {
  std::vector<Address> out;
  for (const auto& [index, link] : table.links()) {
    if (!link.up || !table.hasDefaultRoute(index, family)) continue;
    for (const LinkAddress& a : link.addresses) {
      bool good = a.address.family == family && a.usable && !a.deprecated && !a.temporary &&
                  a.scope == kUniverse;
      if (good) out.push_back(a.address);
    }
  }
  return out;
}

}  // namespace

bool isPrivate(const Address& address) {
  return isPrivate(Prefix{address, address.bits()});
}

bool isPrivate(const Prefix& network) {
  for (const char* text :
       {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"}) {
    Prefix range = *Prefix::parse(text);
    if (range.length <= network.length && range.contains(network.address)) return true;
  }
  return false;
}

namespace {

// A cloud's virtual machine often has a private IPv4 address behind a translation (1:1 NAT), and a
// public IPv6 address. Says so, if all IPv4 addresses are private and some IPv6 address is public.
std::string missingV4(const std::vector<Endpoint>& found) {
  const Endpoint* v4 = nullptr;
  std::string others;
  for (const Endpoint& e : found) {
    if (e.address.isV4() && !isPrivate(e.address)) return {};
    if (e.address.isV4() && !v4) v4 = &e;
    if (e.address.isV6() && !isPrivate(e.address)) others += " --address " + e.toString();
  }
  if (!v4 || others.empty()) return {};
  return "the IPv4 address " + v4->address.toString() +
         " is private, so a gateway without IPv6 cannot come; if a public one leads here, name it, "
         "too: --address PUBLIC-IPV4:" +
         std::to_string(v4->port) + others;
}

}  // namespace

PublicAddresses publicAddresses(const std::vector<Endpoint>& listen, const NetworkTable& table) {
  std::vector<Endpoint> found;
  for (const Endpoint& endpoint : listen) {
    if (!isAny(endpoint.address)) {
      found.push_back(endpoint);
      continue;
    }
    for (const Address& address : ownAddresses(endpoint.address.family, table))
      found.push_back({address, endpoint.port});
  }
  auto isForAll = [](const Endpoint& e) { return !isPrivate(e.address); };
  PublicAddresses out;
  if (std::ranges::any_of(found, isForAll)) {
    out.note = missingV4(found);
    std::erase_if(found, [&](const Endpoint& e) { return !isForAll(e); });
  } else if (!found.empty()) {
    out.note =
        "the addresses of this gateway are private: from elsewhere it is reached by others; name "
        "those with "
        "--address HOST:PORT";
  }
  for (const Endpoint& e : found) {
    if (out.addresses.size() < kMaxInvitationAddresses)
      out.addresses.push_back({e.address.toString(), e.port});
  }
  return out;
}

}  // namespace braid
