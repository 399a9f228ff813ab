#include "gateway/join/public_addresses.h"

#include <algorithm>

#include "gateway/join/invitation.h"

namespace braid {

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
      bool good =
          a.address.family == family && a.usable && !a.deprecated && !a.temporary && a.scope == kUniverse;
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
  for (const char* text : {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"}) {
    Prefix range = *Prefix::parse(text);
    if (range.length <= network.length && range.contains(network.address)) return true;
  }
  return false;
}

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
    std::erase_if(found, [&](const Endpoint& e) { return !isForAll(e); });
  } else if (!found.empty()) {
    out.note =
        "the addresses of this gateway are private: from elsewhere it is reached by others; name those with "
        "--address HOST:PORT";
  }
  for (const Endpoint& e : found) {
    if (out.addresses.size() < kMaxInvitationAddresses)
      out.addresses.push_back({e.address.toString(), e.port});
  }
  return out;
}

}  // namespace braid
