#pragma once

// What passes between the core and its drivers.

#include <optional>
#include <string>
#include <vector>

#include "inet/endpoint.h"
#include "scheduler/path/path_tiers.h"
#include "tunnel/session/event.h"
#include "tunnel/subflow/datagram.h"
#include "tunnel/subflow/route.h"

namespace braid {

/// One local interface that an initiator may start subflows from: each socket carries one subflow per
/// endpoint of each peer, of the socket's address family.
struct UplinkSpec {
  std::string name;
  struct Socket {
    SocketId id = 0;
    Address::Family family = Address::Family::kV4;
  };
  std::vector<Socket> sockets;
  bool up = true;               ///< link and address are there
  PathPreference preference{};  ///< whose `uplink` is not read
  uint64_t peerCeiling = 0;     ///< bytes per second that a peer may send to it, as PathPreference::ceiling
  /// Bytes that the uplink may carry in a period, both ways and with IP and UDP headers. At the cap it counts as
  /// down.
  struct Meter {
    uint64_t cap = 0;
    uint64_t used = 0;  ///< of the present period; read when the uplink is new, or its meter
  };
  std::optional<Meter> meter = std::nullopt;
};

}  // namespace braid
