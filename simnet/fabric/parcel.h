#pragma once

#include <cstddef>
#include <cstdint>

#include "simnet/wire_datagram.h"

namespace braid::sim {

/// Who sent a packet, and who is to get it at the other host.
enum class Lane : uint8_t { kGateway, kHost };

/// A packet on its way through a network: a datagram of a gateway, or the IP packet of a host.
struct Parcel {
  Lane lane = Lane::kGateway;
  WireDatagram wire;
  uint32_t host = 0;   ///< where it goes
  uint32_t bytes = 0;  ///< IP packet
  uint64_t flow = 0;   ///< what switches hash: addresses, protocol and ports
};
/// What switches hash of a packet between these two.
uint64_t flowHash(const Endpoint& src, const Endpoint& dst);
inline bool markCe(Parcel& p) {
  return markCe(p.wire);
}

}  // namespace braid::sim
