#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "inet/inner_packet.h"

namespace braid {

/// What one UDP packet says of its flow: whether its receiver takes reordering for loss.
enum class DatagramSign : uint8_t {
  kNone,  ///< nothing
  kSetup,  ///< the next packets will tell: IKE before ESP, DTLS before its first data, a version that QUIC refuses
  kOrdered,  ///< QUIC, or a VPN: order is wanted
  kTimely,   ///< by its DSCP each packet is wanted at once: EF (RFC 3246) or VOICE-ADMIT (RFC 5865)
};

/// By the packet alone, in constant time. `ipPacket`: what `ip` was parsed from, at least ip.size bytes.
///
///   - QUIC: the long header of RFC 8999, of versions 1 and 2 (RFC 9000, 9369) as they come; of any other version in a
///     datagram of 1200 bytes with the bit set that QUIC calls fixed, so that RTP is none. A server's shorter one
///     is setup;
///   - WireGuard: a handshake message, or data, of the sizes that these have; Tailscale's probes before it are setup;
///   - OpenVPN: a hard reset, plain, with tls-auth, tls-crypt or tls-crypt-v2;
///   - ESP in UDP (RFC 3948): port 4500 with an SPI of 256 or more;
///   - DTLS 1.0 and 1.2 (RFC 6347): a record of application data.
DatagramSign datagramSign(const InnerPacket& ip, ByteView ipPacket);

}  // namespace braid
