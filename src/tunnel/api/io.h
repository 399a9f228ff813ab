#pragma once

// Types that the core and its drivers exchange.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "inet/addresses.h"
#include "scheduler/path/path_tiers.h"
#include "tunnel/session/event.h"
#include "tunnel/subflow/route.h"
#include "tunnel/wire/handshake_envelope.h"
#include "tunnel/wire/secrets.h"

namespace braid {

/// A local interface from which an initiator may start subflows. Each of its sockets carries one
/// subflow per endpoint of each peer, if the endpoint has the socket's address family.
struct UplinkSpec {
  std::string name;
  struct Socket {
    SocketId id = 0;
    Address::Family family = Address::Family::kV4;
  };
  std::vector<Socket> sockets;
  bool up = true;               ///< the interface has link and an address
  PathPreference preference{};  ///< its field `uplink` is ignored
  /// Bytes per second that a peer may send to this uplink, as PathPreference::ceiling; 0: no limit.
  uint64_t peerCeiling = 0;
  /// Limits the bytes that the uplink may carry in a period, in both directions together, IP and
  /// UDP headers included. An uplink that has reached its cap counts as down.
  struct Meter {
    uint64_t cap = 0;
    uint64_t used = 0;  ///< in the present period; read only when the uplink or its meter is new
  };
  std::optional<Meter> meter = std::nullopt;
};

/// A peer that connected to this gateway, with what must be known of it after a restart.
struct KnownInitiator {
  /// Maximum number of routes of a peer that are kept.
  static constexpr size_t kMostRoutes = 8;

  Pin pin{};
  RestartNotice call;         ///< ends the peer's session
  std::vector<Route> routes;  ///< where the peer has proven that it receives

  bool operator==(const KnownInitiator&) const = default;
};

}  // namespace braid
