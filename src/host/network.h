#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"
#include "host/host_numbers.h"
#include "inet/addresses.h"

namespace braid {

/// The main routing table (RT_TABLE_MAIN).
inline constexpr uint32_t kMainTable = 254;

/// An address of an interface with its prefix length.
struct InterfaceAddress {
  Address address;
  unsigned length = 0;
  /// "192.0.2.1/24"
  std::string toString() const;
  auto operator<=>(const InterfaceAddress&) const = default;
};

/// A route to be added.
struct RouteSpec {
  enum class Kind : uint8_t {
    kUnicast,
    kLocal,        ///< packets to `destination` are delivered to this host
    kThrow,        ///< the look-up ends in this table, and goes on with the next rule
    kUnreachable,  ///< packets are refused, and their sender is told
  };
  Prefix destination;  ///< length 0: the default route of the address's family
  std::string device;  ///< empty for kThrow and kUnreachable
  Address via;         ///< next hop; unset: on link
  uint32_t table = kMainTable;
  uint32_t metric = 0;  ///< 0: the kernel's default
  bool onLink = false;  ///< treat `via` as reachable on `device` even without a route to it
  Kind kind = Kind::kUnicast;
  bool stays = false;  ///< undo() leaves it: it is to outlive the process
  std::string toString() const;
  bool hasDevice() const { return kind == Kind::kUnicast || kind == Kind::kLocal; }
  bool operator==(const RouteSpec&) const = default;
};

/// "0x40"
std::string hexadecimal(uint32_t value);

/// A policy routing rule to be added.
struct RuleSpec {
  Address::Family family = Address::Family::kV4;
  uint32_t priority = 0;
  std::string outInterface;  ///< only packets of sockets bound to this interface; empty: any
  Prefix from;               ///< source prefix; length 0: any
  uint32_t table = kMainTable;
  /// Ignore routes whose prefix is of this length or shorter (0: ignore default routes).
  std::optional<uint32_t> suppressPrefixLength;
  uint32_t mark = 0;                             ///< only packets with this mark; 0: any
  uint32_t markMask = UINT32_MAX;                ///< the bits of the mark that are compared
  bool localOnly = false;                        ///< only packets that this host sends (`iif lo`)
  uint8_t protocol = 0;                          ///< only packets of this protocol of IP; 0: any
  uint16_t sourcePort = 0, destinationPort = 0;  ///< 0: any
  bool inverted = false;                         ///< for the packets that do not match
  bool stays = false;                            ///< undo() leaves it: it is to outlive the process
  std::string toString() const;
  bool operator==(const RuleSpec&) const = default;
};

/// What has the kernel deliver packets with HostNumbers::interceptedMark() to this host, whatever
/// their destination.
struct LocalDelivery {
  RouteSpec route;
  RuleSpec rule;
};
/// `device`: the gateway's interface; the route disappears with it.
LocalDelivery localDelivery(Address::Family family, const std::string& device,
                            const HostNumbers& numbers);

/// Changes links, addresses, routes and rules of the host, remembers each change, and undoes all of
/// them in the end. Errors are SystemErrors with a remedy. If something to be added exists already,
/// that is an error that names it. Exception: if a killed process of Braid left it, it is taken
/// over.
class HostNetwork {
 public:
  virtual ~HostNetwork() = default;

  /// Also marks the device as one of Braid's, for other gateways of the host.
  virtual void setLinkUp(const std::string& device) = 0;
  /// The first call for a device remembers the MTU to be restored.
  virtual void setMtu(const std::string& device, uint32_t mtu) = 0;
  virtual void addAddress(const std::string& device, const InterfaceAddress& address) = 0;
  virtual void removeAddress(const std::string& device, const InterfaceAddress& address) = 0;
  /// Makes the device a port of this bridge.
  virtual void setMaster(const std::string& device, const std::string& bridge) = 0;

  virtual void addRoute(const RouteSpec& route) = 0;
  virtual void addRule(const RuleSpec& rule) = 0;
  /// Removing something that does not exist any more is not an error.
  virtual void removeRoute(const RouteSpec& route) = 0;
  virtual void removeRule(const RuleSpec& rule) = 0;
  /// Removes Braid's routes of this table that an earlier process left.
  virtual void removeStaleRoutes(uint32_t table) = 0;
  /// Removes Braid's rules with this priority for this table that an earlier process left.
  virtual void removeStaleRules(uint32_t priority, uint32_t table) = 0;
  /// Removes what an earlier process left for this many tables from `first` on: Braid's routes of
  /// them, the rules that lead to them, and the rules of the priority before, by which the same
  /// packets look at the main table first.
  virtual void removeStaleTables(uint32_t first, uint32_t count) = 0;
  /// Whether some gateway of the host has a rule with this priority for another table.
  virtual bool hasOtherRule(uint32_t priority, uint32_t table) = 0;

  /// The networks of the main table and of other gateways that are reached through another device
  /// than this one, except default routes.
  virtual std::vector<Prefix> networksElsewhere(const std::string& device) = 0;

  /// Switches on the forwarding of packets of the family between the host's interfaces. `hosts`:
  /// interfaces that continue to accept router advertisements, in addition to those through which a
  /// router advertisement gave a default route; a later call may name others. `before`: what
  /// forwardingBefore() returned in this process or in one that was killed. If it is not empty,
  /// forwarding is switched off in the end even if it is on already. Does nothing on a host without
  /// the family.
  virtual void setForwarding(Address::Family family, const std::vector<std::string>& hosts,
                             const std::string& before) = 0;
  /// The host forwards packets of the family that come in by this interface
  /// (net.ipv4.conf.INTERFACE.forwarding, net.ipv6.conf.all.forwarding).
  virtual bool forwards(Address::Family family, const std::string& interface) = 0;
  /// Undoes setForwarding() now.
  virtual void removeForwarding(Address::Family family) = 0;
  /// The state to restore when forwarding of the family is switched off in the end, as words. Empty
  /// when it will not be switched off. Before setForwarding(): the state as it would be saved now.
  virtual std::string forwardingBefore(Address::Family family) = 0;

  /// What restore() found.
  struct Restored {
    std::vector<std::string> back;    ///< what was gone and was added again
    std::vector<std::string> failed;  ///< why something is still missing, as lines for the log
  };
  /// Repeats changes that others have undone: addresses, routes, rules, "up", MTU and bridge.
  /// Changes that need a device which is gone or down are left for later. If others put something
  /// of their own in its place, that stays.
  virtual Restored restore() = 0;

  /// Undoes all changes except those that are to outlive the process, the last one first. Changes
  /// that are already gone, with their device or because others removed them, are not failures.
  /// Other failures are returned as lines for the log.
  virtual std::vector<std::string> undo() = 0;
};

/// An address of an interface.
struct LinkAddress {
  Address address;
  uint8_t prefixLength = 0;
  uint8_t scope = 0;        ///< RT_SCOPE_*: 0 is universe, 253 is link
  bool usable = true;       ///< not tentative, and duplicate address detection did not fail
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
  bool on = false;  ///< switched on (IFF_UP), with or without carrier
  uint32_t mtu = 0;
  uint32_t master = 0;    ///< index of the bridge (bond, VRF...) that it is a port of; 0: none
  uint16_t hardware = 0;  ///< ARPHRD_*: 1 is Ethernet
  /// The kernel's name of the type (IFLA_INFO_KIND): "bridge", "vlan"; empty for a NIC, or "lo".
  std::string kind;
  int lower = 0;   ///< the interface that it runs over, or the other end of a veth; 0: none
  int space = -1;  ///< the kernel's id of the network namespace of `lower`; -1: this one
  /// How often the interface was seen switched off. Each time the kernel drops its routes.
  unsigned switchedOff = 0;
  std::set<LinkAddress> addresses;
  std::set<std::string> altnames;  ///< further names (ip link property add)
  std::string mac;                 ///< "02:00:5e:00:53:01"; empty: it has none of 6 bytes
  std::string ownMac;              ///< the one that the device was made with; empty: unknown
  std::string path;                ///< where it is plugged in, as devicePath() says; empty: unknown
  bool operator==(const Link&) const = default;
};

/// What an interface is found by: one of the three is set. A name may change hands when equal
/// devices appear in another order.
struct LinkSelector {
  std::string name;  ///< the name, or one of Link::altnames
  std::string mac;
  std::string path;
  /// "wlan0", "the interface with MAC 02:...", "the interface at pci-..."
  std::string toString() const;
  bool operator==(const LinkSelector&) const = default;
};

/// A default route of the main table.
struct DefaultRoute {
  Address::Family family = Address::Family::kNone;
  int link = 0;  ///< interface index
  Address via;   ///< next hop; unset: on link
  uint32_t metric = 0;
  auto operator<=>(const DefaultRoute&) const = default;
};

/// A network whose addresses all belong to this host, because of a local route (`ip route add
/// local`).
struct LocalNetwork {
  Prefix network;
  /// Routing table of the route. The kernel adds a route for each address of the host to
  /// RT_TABLE_LOCAL.
  uint32_t table = 0;
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

/// A snapshot of the host's links, addresses, default routes and local routes. A plain value.
class NetworkTable {
 public:
  const std::map<int, Link>& links() const { return links_; }
  const std::set<DefaultRoute>& defaultRoutes() const { return routes_; }
  /// The interface of this name; nullptr when it does not exist.
  const Link* find(const std::string& name) const;
  /// The interface that is meant; nullptr when there is none, or when several fit and `several` is
  /// then their names. Of interfaces with one MAC the device itself is meant, not the VLANs and
  /// bridges on it.
  const Link* find(const LinkSelector& selector, std::string* several = nullptr) const;
  bool hasDefaultRoute(int link, Address::Family family) const;
  /// Of any family.
  bool hasDefaultRoute(int link) const {
    return hasDefaultRoute(link, Address::Family::kV4) ||
           hasDefaultRoute(link, Address::Family::kV6);
  }
  /// Whether packets to this address stay on this host: it is an address of an interface, or in a
  /// local network.
  bool isOwn(const Address& address) const;

  /// The differences between `before` and this table, links first.
  std::vector<NetworkChange> changesSince(const NetworkTable& before) const;

  /// The interface with this index; it is added if it is unknown.
  Link& link(int index) { return links_[index]; }
  void setLink(Link link) { links_[link.index] = std::move(link); }
  /// Removes the interface together with its routes.
  void removeLink(int index);
  void addDefaultRoute(const DefaultRoute& route) { routes_.insert(route); }
  void removeDefaultRoute(const DefaultRoute& route) { routes_.erase(route); }
  /// Removes all default routes with this family and metric. To the kernel they are one route with
  /// one or more next hops.
  void removeDefaultRoutes(Address::Family family, uint32_t metric);
  void addLocalNetwork(const LocalNetwork& network) { local_.insert(network); }
  void removeLocalNetwork(const LocalNetwork& network) { local_.erase(network); }
  /// Removes the local networks with the prefix, table and metric of `like`, because another route
  /// replaced them.
  void removeLocalNetworks(const LocalNetwork& like);
  void forgetRoutes() {
    routes_.clear();
    local_.clear();
  }
  /// Notes that something that Braid configured may be gone from the host: an interface was
  /// switched off or left its bridge, an address, a rule or a route of Braid was deleted, or
  /// forwarding was switched off.
  void noteLoss() { ++losses_; }
  /// Call on a table that was read again after changes were missed. Continues the counts of
  /// `before`, and increases each by one, because each counted event may have happened once more.
  void continueFrom(const NetworkTable& before);

 private:
  std::map<int, Link> links_;
  std::set<DefaultRoute> routes_;
  std::set<LocalNetwork> local_;
  uint64_t losses_ = 0;
};

/// Follows the host's links, addresses and default routes.
class NetworkMonitor {
 public:
  virtual ~NetworkMonitor() = default;
  virtual const NetworkTable& table() const = 0;
  /// Reads the notifications that have arrived, and returns the changes. If notifications were lost
  /// because the host produced them faster than they were read, reads everything again, at a
  /// bounded rate; until that succeeds the old table stays. Never blocks for longer than the host
  /// needs to list everything. Throws only std::bad_alloc.
  virtual std::vector<NetworkChange> process(Time now) = 0;
  /// When to call process() even without a notification, because some were lost and everything must
  /// be read again. kNever: the table is up to date.
  virtual Time deadline() const = 0;
};

}  // namespace braid
