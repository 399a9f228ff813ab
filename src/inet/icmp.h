#pragma once

#include <cstdint>
#include <optional>

#include "base/packet.h"
#include "inet/addresses.h"
#include "inet/flow_key.h"
#include "inet/inner_packet.h"

namespace braid {

/// ICMP errors that the gateway sends in answer to an inner packet that it cannot carry (RFC 792,
/// RFC 1812 section 4.3.2, RFC 4443). "Offender" below is that inner packet.
///
/// Each function returns a whole IP packet from the offender's destination to its source. It quotes
/// as much of the offender as fits into 576 bytes (IPv4, RFC 1812 section 4.3.2.3) or 1280 bytes
/// (IPv6, RFC 4443 section 2.4(c)), and into the pool's payload size. The caller limits the rate
/// (RFC 1812 section 4.3.2.8).
///
/// The answer's source is the offender's destination, not an address of this host, because the
/// kernel drops packets that a device brings in from one of the host's own addresses. The
/// offender's destination is routed into the device, so that reverse path filters, strict ones too,
/// accept it as a source.
///
/// The packet is an empty handle when the pool is exhausted, the offender is malformed, or it must
/// not be answered (RFC 1812 section 4.3.2.7, RFC 4443 section 2.4(e)): it is an ICMP error or
/// redirect, a later fragment, or from or to an address that is unspecified, loopback, multicast,
/// broadcast or reserved. A subnet's broadcast address cannot be recognized here. (RFC 4443 would
/// allow Packet Too Big in answer to multicast; Braid does not send it.)

/// Builds Fragmentation Needed (RFC 1191: type 3 code 4) or Packet Too Big (RFC 4443 section 3.2).
/// `mtu` is the largest packet that can be carried, IP header included, in bytes. For IPv4 the
/// caller has checked that DF is set.
Packet buildTooBig(PacketPool& pool, ByteView offender, uint16_t mtu);

/// Why an inner packet cannot be delivered.
enum class Unreachable : uint8_t {
  kNoRoute,  ///< no peer has the destination: IPv4 code 0 (net), IPv6 code 0 (no route)
  kHost,     ///< the destination's peer is not connected: IPv4 code 1 (host), IPv6 code 3 (address)
  kProhibited,  ///< refused by configuration: IPv4 code 13, IPv6 code 1
  kSource,      ///< refused because of the packet's source: IPv4 code 13, IPv6 code 5
};

/// Builds Destination Unreachable: IPv4 type 3 (RFC 792, RFC 1812 section 5.2.7.1), IPv6 type 1
/// (RFC 4443 section 3.1).
Packet buildUnreachable(PacketPool& pool, ByteView offender, Unreachable why);

/// The flow of the TCP segment that a Destination Unreachable error quotes; nullopt: the packet is
/// something else, or says that fragmentation is needed. Little is done for a packet of another
/// protocol.
std::optional<FlowKey> unreachableTcp(ByteView packet);

/// The flow of the packet that a router's error quotes; nullopt: the packet is not such an error,
/// or not for the sender of what it quotes. Such errors are Fragmentation Needed, Packet Too Big
/// and Time Exceeded. Any router on the way sends them, and path MTU discovery and traceroute rest
/// on them. `error` is the parsed packet.
std::optional<FlowKey> flowOfRouterError(ByteView packet, const InnerPacket& error);

}  // namespace braid
