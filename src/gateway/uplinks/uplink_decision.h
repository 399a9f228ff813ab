#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/time.h"
#include "gateway/config/config.h"
#include "host/host_numbers.h"
#include "host/network.h"
#include "inet/addresses.h"

namespace braid {

/// What the state of the host means for one uplink.
struct UplinkDecision {
  bool up = false;        ///< can be used now
  std::string reason;     ///< why it is down; when up, a warning or empty
  int link = 0;           ///< interface index; 0: there is none
  std::string interface;  ///< its present name
  Address v4, v6;         ///< local addresses to bind to; unset: this family cannot be used
  std::vector<RouteSpec> routes;
  std::vector<RuleSpec> rules;

  /// `v4` or `v6`.
  const Address& source(Address::Family family) const {
    return family == Address::Family::kV4 ? v4 : v6;
  }
};

/// What the routes and rules of an uplink depend on besides its configuration.
struct UplinkPlace {
  HostNumbers numbers;
  unsigned number = 0;   ///< of the uplink, 0 to 31: selects routing table, rules and mark
  bool replies = false;  ///< replies to what came in by the uplink are to leave by it
};

/// Addresses whose paths were all dead, and when they were given up.
using DeadSources = std::map<Address, Time>;

/// Whether the uplink may send from this address of its interface.
bool mayBeSource(const UplinkConfig& config, const LinkAddress& address, Address::Family family);

/// The policy, without I/O. `v4` and `v6` are the addresses in use. They are kept while they are
/// good, so a new address beside them changes nothing. An address in `dead` is taken only where all
/// are.
UplinkDecision decideUplink(const UplinkConfig& config, const UplinkPlace& place,
                            const NetworkTable& table, const Address& v4, const Address& v6,
                            const DeadSources& dead = {});

}  // namespace braid
