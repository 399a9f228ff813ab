#pragma once

#include <optional>

#include "base/packet.h"
#include "base/random.h"

namespace braid {

/// The item that linkemu carries over a Link: one IP packet in a pooled buffer, with the functions
/// that simnet/link/link.h uses.
struct IpPacket {
  Packet packet;
  PacketPool* pool = nullptr;
};

/// Sets the ECN field to Not-ECT and updates the IPv4 header checksum.
bool clearEcn(IpPacket& item);
/// Changes ECT to CE (RFC 3168) and updates the IPv4 header checksum.
bool markCe(IpPacket& item);
/// Flips one bit anywhere in the packet, including the header, without updating checksums.
void corrupt(IpPacket& item, Random& random);
/// nullopt when the pool is exhausted.
std::optional<IpPacket> clone(const IpPacket& item);

}  // namespace braid
