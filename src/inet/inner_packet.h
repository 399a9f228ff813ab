#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "inet/addresses.h"
#include "inet/flow_key.h"

namespace braid {

/// The TCP header of an inner packet (RFC 9293 section 3.1), host order.
struct TcpFields {
  static constexpr uint8_t kFin = 0x01;
  static constexpr uint8_t kSyn = 0x02;
  static constexpr uint8_t kRst = 0x04;
  static constexpr uint8_t kPsh = 0x08;
  static constexpr uint8_t kAck = 0x10;
  static constexpr uint8_t kUrg = 0x20;
  static constexpr uint8_t kEce = 0x40;  ///< RFC 3168 section 6.1
  static constexpr uint8_t kCwr = 0x80;

  uint32_t seq = 0;
  uint32_t ack = 0;
  uint8_t flags = 0;
  uint16_t headerLength = 0;   ///< bytes, 20..60, options included; lies within the packet
  uint16_t window = 0;         ///< unscaled
  uint32_t payloadLength = 0;  ///< bytes after the header; SYN and FIN not counted

  bool isSyn() const { return flags & kSyn; }
  bool isFin() const { return flags & kFin; }
  bool isRst() const { return flags & kRst; }
  bool isAck() const { return flags & kAck; }
};

/// What the gateway needs to know about an IP packet. Offsets count from the first byte of the IP
/// header. They all lie within `size`, and `size` lies within the parsed buffer. Checksums are not
/// verified: packets come from the kernel or from an authenticated peer, and the receiving host
/// verifies them.
struct InnerPacket {
  Address src;
  Address dst;
  uint8_t protocol = 0;   ///< the transport protocol; for IPv6 the one after the extension headers
  uint32_t size = 0;      ///< the IP packet's own length; the buffer may be longer
  uint32_t l4Offset = 0;  ///< start of the transport header, or of the fragment's data
  uint32_t l4Length = 0;  ///< size - l4Offset: transport header and payload
  uint32_t payloadLength = 0;  ///< after a complete TCP or UDP header, else l4Length
  Ecn ecn = Ecn::kNotEct;
  uint8_t dscp = 0;         ///< 0..63 (RFC 2474)
  uint8_t hopLimit = 0;     ///< TTL for IPv4
  bool isFragment = false;  ///< one of several fragments; an IPv6 atomic fragment (RFC 6946) is not
  bool isFirstFragment = false;
  bool dontFragment = false;  ///< the DF bit; always true for IPv6, where only the source fragments
  /// The packet is TCP, UDP, UDP-Lite, SCTP or DCCP, is not a later fragment, and is long enough to
  /// contain the ports.
  bool hasPorts = false;
  uint16_t sport = 0;  ///< host order, 0 without ports
  uint16_t dport = 0;
  std::optional<TcpFields> tcp;  ///< a well-formed TCP header; never for fragments

  bool isV4() const { return src.isV4(); }
  bool isV6() const { return src.isV6(); }
  bool isLaterFragment() const { return isFragment && !isFirstFragment; }
  /// The flow of this packet. All fragments of one packet, the first too, have the same key with
  /// ports 0, so that they stay in order. Exception: with IPv6 extension headers after the fragment
  /// header, later fragments cannot tell the transport protocol.
  FlowKey flowKey() const;
};

/// Parses an IPv4 (RFC 791) or IPv6 (RFC 8200) packet. nullopt when the version is another one,
/// when a length field is too small for its header or too large for the buffer, or when IPv6
/// extension headers are cut off or more than kMaxExtensionHeaders. A malformed transport header is
/// not an error: `tcp` or the ports are then missing.
std::optional<InnerPacket> parseInnerPacket(ByteView packet);

/// Chosen: real packets have one to three.
inline constexpr int kMaxExtensionHeaders = 8;

}  // namespace braid
