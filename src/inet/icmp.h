#pragma once

#include <cstdint>

#include "base/packet.h"
#include "inet/endpoint.h"

namespace braid {

/// ICMP errors that the gateway answers to an inner packet that it cannot carry (RFC 792, RFC 1812
/// section 4.3.2, RFC 4443).
///
/// Each function gives a whole IP packet from the offender's destination to its source, with as much of the
/// offender as fits 576 bytes (IPv4, RFC 1812 section 4.3.2.3) or 1280 bytes (IPv6, RFC 4443 section 2.4(c))
/// and the pool's payload size. The caller limits the rate (RFC 1812 section 4.3.2.8).
///
/// The destination is the source of the answer because the kernel drops what a device brings in from one of the
/// host's own addresses. The destination is routed into the device: reverse path filters, strict ones too, take
/// packets from there.
///
/// The packet is empty when the pool is exhausted, the offender is malformed, or it must not be answered (RFC
/// 1812 section 4.3.2.7, RFC 4443 section 2.4(e)): an ICMP error or redirect; a later fragment; from or to an
/// address that is unspecified, loopback, multicast, broadcast or reserved. A subnet's broadcast address cannot
/// be told here. (RFC 4443 would allow Packet Too Big to multicast; Braid does not send it.)

/// Fragmentation needed (RFC 1191: type 3 code 4) or Packet Too Big (RFC 4443 section 3.2). `mtu` is the
/// largest packet that is carried, IP header included, bytes. For IPv4 the caller has seen DF.
Packet buildTooBig(PacketPool& pool, ByteView offender, uint16_t mtu);

/// Why an inner packet goes nowhere.
enum class Unreachable : uint8_t {
  kNoRoute,     ///< no peer has the destination: IPv4 code 0 (net), IPv6 code 0 (no route)
  kHost,        ///< its peer is not there now: IPv4 code 1 (host), IPv6 code 3 (address)
  kProhibited,  ///< refused by configuration: IPv4 code 13, IPv6 code 1
};

/// Destination unreachable: IPv4 type 3 (RFC 792, RFC 1812 section 5.2.7.1), IPv6 type 1 (RFC 4443
/// section 3.1).
Packet buildUnreachable(PacketPool& pool, ByteView offender, Unreachable why);

}  // namespace braid
