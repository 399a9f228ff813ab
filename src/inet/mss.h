#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "inet/inner_packet.h"

namespace braid {

/// Lowers the MSS option (RFC 9293 section 3.7.1) of a TCP SYN or SYN-ACK to what fits an inner MTU of `mtu`
/// bytes without IP options: mtu - 40 for IPv4, mtu - 60 for IPv6; mends the TCP checksum. True when the
/// packet was changed.
///
/// Never raises it and never adds the option. Options are read as a receiver does, up to the first malformed
/// one: an MSS option of a wrong length, or anything behind a malformed option, stays as it is.
bool clampMss(ByteSpan packet, uint16_t mtu);

/// clampMss() of a packet that is parsed already: `parsed` is parseInnerPacket(packet).
bool clampMss(ByteSpan packet, const InnerPacket& parsed, uint16_t mtu);

}  // namespace braid
