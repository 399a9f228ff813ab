#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "inet/endpoint.h"
#include "inet/prefix.h"

namespace braid {

/// RT_TABLE_MAIN.
inline constexpr uint32_t kMainTable = 254;

/// An address on an interface with the length of its network.
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
  Address via;  ///< unset: on link
  uint32_t table = kMainTable;
  uint32_t metric = 0;  ///< 0: the kernel's default
  bool onLink = false;  ///< `via` is taken as reachable on `device` without a route to it
  bool local = false;   ///< what it leads is delivered to this host
  std::string toString() const;
  bool operator==(const RouteSpec&) const = default;
};

/// A policy routing rule to be added.
struct RuleSpec {
  Address::Family family = Address::Family::kV4;
  uint32_t priority = 0;
  std::string outInterface;  ///< sockets bound to this interface; empty: any
  Prefix from;               ///< source; length 0: any
  uint32_t table = kMainTable;
  /// Ignore what the lookup finds when its prefix is that long or shorter (0: ignore default routes).
  std::optional<uint32_t> suppressPrefixLength;
  uint32_t mark = 0;  ///< only packets with this mark; 0: any
  std::string toString() const;
  bool operator==(const RuleSpec&) const = default;
};

/// Changes links, addresses, routes and rules of the host, remembers each change and takes all of them back
/// in the end. Errors are SystemErrors with a remedy. What is there already is an error that names it, unless
/// a process of ours that was killed left it: then it is taken over.
class HostNetwork {
 public:
  virtual ~HostNetwork() = default;

  virtual void setLinkUp(const std::string& device) = 0;
  /// The first call remembers the MTU to go back to.
  virtual void setMtu(const std::string& device, uint32_t mtu) = 0;
  virtual void addAddress(const std::string& device, const InterfaceAddress& address) = 0;
  virtual void removeAddress(const std::string& device, const InterfaceAddress& address) = 0;
  /// Makes the device a port of this bridge.
  virtual void setMaster(const std::string& device, const std::string& bridge) = 0;

  virtual void addRoute(const RouteSpec& route) = 0;
  virtual void addRule(const RuleSpec& rule) = 0;
  /// What is not there any more is no error.
  virtual void removeRoute(const RouteSpec& route) = 0;
  virtual void removeRule(const RuleSpec& rule) = 0;
  /// Removes Braid's routes of this table that a process before this one left.
  virtual void removeStaleRoutes(uint32_t table) = 0;
  /// Removes Braid's rules for marks that begin with the upper byte of `kind` and end with the index of an interface that
  /// there is not: a process before this one left them.
  virtual void removeStaleMarks(uint32_t kind) = 0;

  /// Networks of the main table that hosts are reached in by another device than this one, but for default routes.
  virtual std::vector<Prefix> networksElsewhere(const std::string& device) = 0;

  /// Packets of the family are forwarded between the host's interfaces. `hosts`: interfaces that take router
  /// advertisements as before, beside those through which a router advertisement gave a default route; a later call may
  /// name others. `before`: what forwardingBefore() told to this process or to one that was killed; not empty: forwarding
  /// is switched off in the end even if it is on already. Nothing is done on a host without the family.
  virtual void setForwarding(Address::Family family, const std::vector<std::string>& hosts,
                             const std::string& before) = 0;
  /// What setForwarding() did is taken back now.
  virtual void removeForwarding(Address::Family family) = 0;
  /// What is to be given back when forwarding of the family is switched off in the end, as words; empty: it is not to
  /// be switched off. Before setForwarding(): what would be.
  virtual std::string forwardingBefore(Address::Family family) = 0;

  /// What restore() found.
  struct Restored {
    std::vector<std::string> back;    ///< was gone, and is there again
    std::vector<std::string> failed;  ///< why something is still gone, as lines for the log
  };
  /// Does again what others took away of it: addresses, routes, rules, "up", MTU and bridge. What needs a
  /// device that is gone or down waits for it. Where others put something of their own in its place, that
  /// stays.
  virtual Restored restore() = 0;

  /// Takes everything back, last first. What is already gone, with its device or by other hands, is fine;
  /// other failures are returned as lines for the log.
  virtual std::vector<std::string> undo() = 0;
};

}  // namespace braid
