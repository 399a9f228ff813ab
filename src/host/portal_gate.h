#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "inet/addresses.h"

namespace braid {

/// Which web servers of captive portals are reached past the tunnel, by whom.
struct PortalRules {
  /// TCP to these ports of an address leaves by this interface, with an address of this host.
  struct Way {
    std::string interface;
    uint32_t mark = 0;  ///< of packets that leave by the interface: HostNumbers::replyMark()
    Address address;
    std::vector<uint16_t> ports;
    bool operator==(const Way&) const = default;
  };
  std::vector<Way> ways;          ///< of several for one address, the first counts
  std::vector<std::string> from;  ///< interfaces of the LAN; packets of this host itself count, too
  uint32_t markMask = 0;          ///< the only bits of a packet's mark that are looked at
  bool operator==(const PortalRules&) const = default;
};

/// Keeps PortalRules in effect. All of it ends with this object, and when the process ends in any
/// way, also by SIGKILL.
class PortalGate {
 public:
  virtual ~PortalGate() = default;
  /// Replaces the former rules atomically. Throws SystemError.
  virtual void set(const PortalRules& rules) = 0;
};

}  // namespace braid
