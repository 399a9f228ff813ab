#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <string>

#include "inet/endpoint.h"

namespace braid {

/// The driver's name for one UDP socket.
using SocketId = uint16_t;

/// Where a datagram came from or goes to: one of the driver's sockets, the local address on it (unset: the
/// kernel chooses) and the remote end.
struct Route {
  SocketId socket = 0;
  Address local;
  Endpoint remote;
  auto operator<=>(const Route&) const = default;
};

/// The same socket and remote end. The local address may differ: a route of the configuration leaves it open.
inline bool hasSameEnds(const Route& a, const Route& b) {
  return a.socket == b.socket && a.remote == b.remote;
}

/// Bytes of UDP and IP headers below a datagram.
inline size_t outerHeaders(const Route& route) {
  return route.remote.address.isV6() ? 48 : 28;
}

}  // namespace braid
