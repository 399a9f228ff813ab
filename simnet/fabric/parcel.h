#pragma once

#include <cstddef>
#include <cstdint>

#include "simnet/wire_datagram.h"

namespace braid::sim {

/// Whether a packet belongs to the host's gateway or to the plain host itself. Sender and receiver
/// have the same lane.
enum class Lane : uint8_t { kGateway, kHost };

/// A packet on its way through a switched network: a gateway's datagram or a host's IP packet.
struct Parcel {
  Lane lane = Lane::kGateway;
  WireDatagram wire;
  uint32_t host = 0;   ///< destination host
  uint32_t bytes = 0;  ///< size of the IP packet
  /// Flow hash, by which switches choose the path: of addresses, protocol and ports
  uint64_t flow = 0;
};
/// The flow hash of a packet between these two endpoints.
uint64_t flowHash(const Endpoint& src, const Endpoint& dst);
inline bool markCe(Parcel& p) {
  return markCe(p.wire);
}

}  // namespace braid::sim
