#include "gateway/join/address_plan.h"

#include <algorithm>

#include "gateway/join/public_addresses.h"
#include "inet/special_addresses.h"

namespace braid {

namespace {

// Addresses that are looked at for a free one. Ours: more than the peers that there may be.
constexpr unsigned kMostTries = 4096;

Prefix mustParse(std::string_view text) {
  return Prefix::parse(text).value_or(Prefix{});
}

// The next address; false: there is none.
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
  auto holds = [&](const Prefix& prefix) { return !prefix.isEverything() && prefix.contains(address); };
  bool own = std::ranges::any_of(config.device.addresses,
                                 [&](const InterfaceAddress& a) { return a.address == address; });
  return own || std::ranges::any_of(config.peers, [&](const PeerConfig& peer) {
           return peer.options.name != name && std::ranges::any_of(peer.options.prefixes, holds);
         });
}

// The lowest free address behind the network's own; unset: there is none.
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
      "device.addresses has no network with a free address for another gateway; give it a wider one, such as "
      "10.99.0.1/24");
}

std::vector<Prefix> connectedNetworks(const NetworkTable& table, const std::string& device) {
  std::vector<Prefix> out;
  for (const auto& [index, link] : table.links()) {
    if (link.name == device) continue;
    for (const LinkAddress& a : link.addresses) out.push_back(networkOf({a.address, a.prefixLength}));
  }
  return out;
}

std::vector<Prefix> networksOfHost(const NetworkTable& table, HostNetwork& network,
                                   const std::string& device) {
  std::vector<Prefix> out = connectedNetworks(table, device), routed = network.networksElsewhere(device);
  out.insert(out.end(), routed.begin(), routed.end());
  return out;
}

std::string refuseNetworks(const std::vector<Prefix>& wanted, const std::vector<Prefix>& offered,
                           const std::vector<Prefix>& reached, const Config& config, std::string_view name) {
  const std::string remedy = "; name other networks with --network, or none";
  const SpecialAddresses special;
  for (const Prefix& network : wanted) {
    auto clashes = [&](const Prefix& other) { return network.overlaps(other); };
    std::string text = "the network " + network.toString() + " ";
    if (network.length == 0) return text + "is everything, and cannot be behind one gateway" + remedy;
    if (special.overlap(network))
      return text + "has addresses that are no hosts' (a link's, a cloud's, nobody's)" + remedy;
    if (!isPrivate(network))
      return text +
             "is not private; the concentrator's operator may add it to the gateway's file in peers-folder" +
             remedy;
    if (auto found = std::ranges::find_if(reached, clashes); found != reached.end())
      return text + "overlaps " + found->toString() +
             ", which the concentrator itself is in or has a route to" + remedy;
    for (const InterfaceAddress& own : config.device.addresses) {
      if (clashes(networkOf(own)))
        return text + "overlaps the tunnel's own " + networkOf(own).toString() + remedy;
    }
    for (const std::vector<Prefix>* list : {&config.device.networks, &offered}) {
      auto found =
          std::ranges::find_if(*list, [&](const Prefix& p) { return !p.isEverything() && clashes(p); });
      if (found != list->end())
        return text + "overlaps " + found->toString() + " behind the concentrator" + remedy;
    }
    for (const PeerConfig& peer : config.peers) {
      if (peer.options.name == name) continue;
      auto found = std::ranges::find_if(peer.options.prefixes, clashes);
      if (found != peer.options.prefixes.end())
        return text + "overlaps " + found->toString() + " of the gateway " + peer.options.name + remedy;
    }
    if (std::ranges::count_if(wanted, clashes) > 1) return text + "overlaps another of this gateway" + remedy;
  }
  return {};
}

}  // namespace braid
