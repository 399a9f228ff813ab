#pragma once

#include <optional>

#include "base/bytes.h"
#include "inet/endpoint.h"

namespace braid {

/// The ECN field of an IP packet, in place (RFC 3168 section 5). Packets are whole IPv4 or IPv6 packets; what
/// is neither or shorter than its fixed header is left alone.

/// nullopt for what is no IP packet.
std::optional<Ecn> readEcn(ByteView packet);

/// Sets the field and mends the IPv4 header checksum. False for what is no IP packet.
bool setEcn(ByteSpan packet, Ecn ecn);

/// Congestion experienced: true when the packet now carries CE. False when it is not ECN-capable (or no IP
/// packet): such a packet is dropped instead (RFC 3168 section 5).
bool markCe(ByteSpan packet);

}  // namespace braid
