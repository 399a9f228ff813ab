#pragma once

#include <optional>

#include "base/packet.h"
#include "base/random.h"

namespace braid {

/// What linkemu carries over a Link: one IP packet in a pooled buffer, with the hooks of simnet/link/link.h.
struct IpPacket {
  Packet packet;
  PacketPool* pool = nullptr;
};

/// The ECN field becomes Not-ECT, the IPv4 header checksum is mended.
bool clearEcn(IpPacket& item);
/// RFC 3168: ECT becomes CE, the IPv4 header checksum is mended.
bool markCe(IpPacket& item);
/// Flips one bit anywhere in the packet, header included; checksums are left as they were.
void corrupt(IpPacket& item, Random& random);
/// nullopt when the pool is exhausted.
std::optional<IpPacket> clone(const IpPacket& item);

}  // namespace braid
