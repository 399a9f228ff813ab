#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "inet/prefix.h"

namespace braid {

/// An address of an interface.
struct LinkAddress {
  Address address;
  uint8_t prefixLength = 0;
  uint8_t scope = 0;        ///< RT_SCOPE_*: 0 is universe, 253 link
  bool usable = true;       ///< not tentative, not a failed duplicate
  bool deprecated = false;  ///< not for new connections (RFC 4862 section 2)
  bool temporary = false;   ///< privacy address (RFC 8981)
  auto operator<=>(const LinkAddress&) const = default;
};

/// An interface.
struct Link {
  int index = 0;
  std::string name;
  /// Switched on, with carrier, and ready for traffic (IFF_UP, IFF_LOWER_UP, operational state).
  bool up = false;
  uint32_t mtu = 0;
  uint32_t master = 0;    ///< index of the bridge (bond, VRF...) that it is a port of; 0: none
  uint16_t hardware = 0;  ///< ARPHRD_*: 1 is Ethernet
  std::string kind;  ///< as the kernel names it (IFLA_INFO_KIND): "bridge", "vlan"; empty: a NIC, or "lo"
  int lower = 0;     ///< the interface that it runs over, or the other end of a veth; 0: none
  int space = -1;    ///< the kernel's number for the network namespace of `lower`; -1: it is this one
  unsigned switchedOff = 0;  ///< how often it was seen switched off: each time the kernel drops its routes
  std::set<LinkAddress> addresses;
  bool operator==(const Link&) const = default;
};

/// A default route of the main table.
struct DefaultRoute {
  Address::Family family = Address::Family::kNone;
  int link = 0;  ///< interface index
  Address via;   ///< unset: on link
  uint32_t metric = 0;
  auto operator<=>(const DefaultRoute&) const = default;
};

/// A network whose addresses are all this host's own, by a route that says so (`ip route add local`).
struct LocalNetwork {
  Prefix network;
  uint32_t table = 0;  ///< of routes; the kernel has a route for each of its addresses in RT_TABLE_LOCAL
  uint32_t metric = 0;
  int link = 0;  ///< interface index
  auto operator<=>(const LocalNetwork&) const = default;
};

/// One difference between two tables.
struct NetworkChange {
  enum class Kind : uint8_t {
    kLinkAdded,
    kLinkGone,
    kLinkUp,
    kLinkDown,
    kLinkRenamed,
    kMtu,
    kAddressAdded,
    kAddressGone,
    kRouteAdded,
    kRouteGone,
    kLoss
  };
  Kind kind;
  int link = 0;
  std::string text;  ///< one line in plain words
};

/// What is known of the host's links, addresses, default and local routes: a plain value.
class NetworkTable {
 public:
  const std::map<int, Link>& links() const { return links_; }
  const std::set<DefaultRoute>& defaultRoutes() const { return routes_; }
  /// nullptr when there is no interface of this name.
  const Link* find(const std::string& name) const;
  bool hasDefaultRoute(int link, Address::Family family) const;
  /// Whether what is sent there stays with this host: an address of an interface, or of a network that is its own.
  bool isOwn(const Address& address) const;

  /// What happened between `before` and this, links first.
  std::vector<NetworkChange> changesSince(const NetworkTable& before) const;

  /// The interface of this index, added when it is unknown.
  Link& link(int index) { return links_[index]; }
  void setLink(Link link) { links_[link.index] = std::move(link); }
  /// The interface goes, and its default routes with it.
  void removeLink(int index);
  void addDefaultRoute(const DefaultRoute& route) { routes_.insert(route); }
  void removeDefaultRoute(const DefaultRoute& route) { routes_.erase(route); }
  /// Removes all of a family and metric: to the kernel they are one route, with one or more next hops.
  void removeDefaultRoutes(Address::Family family, uint32_t metric);
  void addLocalNetwork(const LocalNetwork& network) { local_.insert(network); }
  void removeLocalNetwork(const LocalNetwork& network) { local_.erase(network); }
  /// Removes those of a prefix, table and metric: another route took their place.
  void removeLocalNetworks(const LocalNetwork& like);
  void forgetRoutes() {
    routes_.clear();
    local_.clear();
  }
  /// Something of ours may be gone from the host: an interface was switched off or left its bridge, or an
  /// address, a rule or a route of ours was deleted, or forwarding switched off.
  void noteLoss() { ++losses_; }
  /// Everything was read anew after some changes were missed: what `before` counted goes on, and all that is
  /// counted may have happened once more.
  void continueFrom(const NetworkTable& before);

 private:
  std::map<int, Link> links_;
  std::set<DefaultRoute> routes_;
  std::set<LocalNetwork> local_;
  uint64_t losses_ = 0;
};

}  // namespace braid
