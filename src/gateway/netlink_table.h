#pragma once

#include <libmnl/libmnl.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "inet/endpoint.h"

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
  bool up =
      false;  ///< switched on, with carrier, and ready for traffic (IFF_UP, IFF_LOWER_UP, operational state)
  uint32_t mtu = 0;
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

/// One difference between two tables.
struct NetlinkChange {
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
    kRouteGone
  };
  Kind kind;
  int link = 0;
  std::string text;  ///< one line in plain words
};

/// What is known of links, addresses and default routes: fed with rtnetlink messages, free of I/O.
class NetlinkTable {
 public:
  /// RTM_{NEW,DEL}{LINK,ADDR,ROUTE}; others and malformed ones change nothing.
  void apply(const nlmsghdr& message);
  /// Drops the IPv4 default routes, before they are read anew: the kernel removes some without a word (a link
  /// goes down, a preferred source address goes).
  void forgetRoutes() { routes_.clear(); }

  const std::map<int, Link>& links() const { return links_; }
  const std::set<DefaultRoute>& defaultRoutes() const { return routes_; }
  /// nullptr when there is no interface of this name.
  const Link* find(const std::string& name) const;
  bool hasDefaultRoute(int link, Address::Family family) const;

  /// What happened between `before` and this, links first.
  std::vector<NetlinkChange> changesSince(const NetlinkTable& before) const;

  /// For tests and fakes.
  void setLink(Link link) { links_[link.index] = std::move(link); }
  void removeLink(int index);
  void addDefaultRoute(const DefaultRoute& route) { routes_.insert(route); }

 private:
  void applyLink(const nlmsghdr& message);
  void applyAddress(const nlmsghdr& message);
  void applyRoute(const nlmsghdr& message);

  std::map<int, Link> links_;
  std::set<DefaultRoute> routes_;
};

}  // namespace braid
