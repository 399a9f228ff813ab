#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "inet/endpoint.h"
#include "inet/prefix.h"

namespace braid {

/// The routing protocol number (rtm_protocol) that marks routes, rules and addresses as Braid's; free in
/// /etc/iproute2/rt_protos.
inline constexpr uint8_t kBraidProtocol = 66;
/// RT_TABLE_MAIN.
inline constexpr uint32_t kMainTable = 254;

/// A route to be added.
struct RouteSpec {
  Prefix destination;  ///< length 0: the default route of the address's family
  std::string device;
  Address via;  ///< unset: on link
  uint32_t table = kMainTable;
  uint32_t metric = 0;  ///< 0: the kernel's default
  bool onLink = false;  ///< `via` is taken as reachable on `device` without a route to it
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
  std::string toString() const;
  bool operator==(const RuleSpec&) const = default;
};

/// What changes the host's routing; NetlinkConfig, or a fake in tests. Throws SystemError.
class Routing {
 public:
  virtual ~Routing() = default;
  virtual void addRoute(const RouteSpec& route) = 0;
  virtual void addRule(const RuleSpec& rule) = 0;
  /// What is not there any more is no error.
  virtual void removeRoute(const RouteSpec& route) = 0;
  virtual void removeRule(const RuleSpec& rule) = 0;
  /// Removes Braid's routes of this table that a process before this one left.
  virtual void removeStaleRoutes(uint32_t table) = 0;
};

}  // namespace braid
