#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "inet/inner_packet.h"

namespace braid {

/// What a single UDP packet tells about its flow: whether the receiver takes reordering for loss,
/// so that packets should be delivered in order.
enum class DatagramSign : uint8_t {
  kNone,     ///< nothing
  kSetup,    ///< still unknown, the next packets will tell: IKE before ESP, DTLS before its first
             ///< data, a QUIC version that was refused
  kOrdered,  ///< QUIC or a VPN: deliver in order
  kTimely,   ///< the DSCP asks for low delay, do not wait for order: EF (RFC 3246) or VOICE-ADMIT
             ///< (RFC 5865)
};

/// Classifies a packet without any state, in constant time. `ipPacket` is what `ip` was parsed
/// from, at least ip.size bytes. Recognized protocols:
///
///   - QUIC: a long header (RFC 8999) of version 1 or 2 (RFC 9000, 9369). A long header of another
///     version counts in a datagram of at least 1200 bytes with QUIC's fixed bit set, so that RTP
///     is not taken for QUIC. A server's shorter one is kSetup.
///   - WireGuard: a handshake message or data, by type and size. Tailscale's probes before it are
///     kSetup.
///   - OpenVPN: a hard reset, plain, with tls-auth, tls-crypt or tls-crypt-v2.
///   - ESP in UDP (RFC 3948): port 4500 with an SPI of 256 or more.
///   - DTLS 1.0 and 1.2 (RFC 6347): a record of application data.
DatagramSign datagramSign(const InnerPacket& ip, ByteView ipPacket);

}  // namespace braid
