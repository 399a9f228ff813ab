#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

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
  Prefix destination;  ///< length 0: the default route of the address's family
  std::string device;
  Address via;  ///< next hop; unset: on link
  uint32_t table = kMainTable;
  uint32_t metric = 0;  ///< 0: the kernel's default
  bool onLink = false;  ///< treat `via` as reachable on `device` even without a route to it
  bool local = false;   ///< packets to `destination` are delivered to this host
  std::string toString() const;
  bool operator==(const RouteSpec&) const = default;
};

/// A policy routing rule to be added.
struct RuleSpec {
  Address::Family family = Address::Family::kV4;
  uint32_t priority = 0;
  std::string outInterface;  ///< only packets of sockets bound to this interface; empty: any
  Prefix from;               ///< source prefix; length 0: any
  uint32_t table = kMainTable;
  /// Ignore routes whose prefix is of this length or shorter (0: ignore default routes).
  std::optional<uint32_t> suppressPrefixLength;
  uint32_t mark = 0;  ///< only packets with this mark; 0: any
  std::string toString() const;
  bool operator==(const RuleSpec&) const = default;
};

/// Changes links, addresses, routes and rules of the host, remembers each change, and undoes all of
/// them in the end. Errors are SystemErrors with a remedy. If something to be added exists already,
/// that is an error that names it. Exception: if a killed process of Braid left it, it is taken
/// over.
class HostNetwork {
 public:
  virtual ~HostNetwork() = default;

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
  /// Removes Braid's rules that an earlier process left: those for marks whose upper byte is that
  /// of `kind` and whose lower bits are the index of an interface that does not exist.
  virtual void removeStaleMarks(uint32_t kind) = 0;

  /// The networks of the main table that are reached through another device than this one, except
  /// default routes.
  virtual std::vector<Prefix> networksElsewhere(const std::string& device) = 0;

  /// Switches on the forwarding of packets of the family between the host's interfaces. `hosts`:
  /// interfaces that continue to accept router advertisements, in addition to those through which a
  /// router advertisement gave a default route; a later call may name others. `before`: what
  /// forwardingBefore() returned in this process or in one that was killed. If it is not empty,
  /// forwarding is switched off in the end even if it is on already. Does nothing on a host without
  /// the family.
  virtual void setForwarding(Address::Family family, const std::vector<std::string>& hosts,
                             const std::string& before) = 0;
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

  /// Undoes all changes, the last one first. Changes that are already gone, with their device or
  /// because others removed them, are not failures. Other failures are returned as lines for the
  /// log.
  virtual std::vector<std::string> undo() = 0;
};

}  // namespace braid
