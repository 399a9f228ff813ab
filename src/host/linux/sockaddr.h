#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstring>

#include "inet/addresses.h"

namespace braid {

/// A socket address of either family.
union SocketAddress {
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

/// Converts an endpoint to `out` and returns its length; 0 for an endpoint without address.
inline socklen_t toSocketAddress(const Endpoint& from, SocketAddress& out) {
  if (from.address.isV4()) {
    out.v4 = {};
    out.v4.sin_family = AF_INET;
    out.v4.sin_port = htons(from.port);
    std::memcpy(&out.v4.sin_addr, from.address.bytes.data(), 4);
    return sizeof out.v4;
  }
  if (from.address.isV6()) {
    out.v6 = {};
    out.v6.sin6_family = AF_INET6;
    out.v6.sin6_port = htons(from.port);
    std::memcpy(&out.v6.sin6_addr, from.address.bytes.data(), 16);
    return sizeof out.v6;
  }
  return 0;
}

inline Address fromInAddr(const in_addr& a) {
  Address out;
  out.family = Address::Family::kV4;
  std::memcpy(out.bytes.data(), &a, 4);
  return out;
}

inline Address fromIn6Addr(const in6_addr& a) {
  Address out;
  out.family = Address::Family::kV6;
  std::memcpy(out.bytes.data(), &a, 16);
  return out;
}

/// Converts a socket address. For families other than IPv4 and IPv6 the endpoint has no address.
inline Endpoint fromSocketAddress(const SocketAddress& from) {
  if (from.any.sa_family == AF_INET) return {fromInAddr(from.v4.sin_addr), ntohs(from.v4.sin_port)};
  if (from.any.sa_family == AF_INET6)
    return {fromIn6Addr(from.v6.sin6_addr), ntohs(from.v6.sin6_port)};
  return {};
}

}  // namespace braid
