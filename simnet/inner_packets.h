#pragma once

// Inner packets that simulated hosts send: real IPv4 and IPv6 packets with valid checksums. Their
// payload is a known function of the stream offset, so receivers can check every byte.

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "inet/addresses.h"
#include "inet/inner_packet.h"
#include "inet/tcp.h"

namespace braid::sim {

using Bytes = std::vector<uint8_t>;

Address address(std::string_view text);

/// The header fields that differ between the hosts' packets.
struct IpFields {
  Address src;
  Address dst;
  uint8_t protocol = 0;
  Ecn ecn = Ecn::kNotEct;
  bool dontFragment = true;
  uint8_t dscp = 0;
};

/// Puts an IP header in front of `segment` and fills in the segment's checksum at offset
/// `checksumAt`.
Bytes ipPacket(const IpFields& ip, ByteView segment, size_t checksumAt);

struct TcpSegment {
  uint16_t sport = 0, dport = 0;
  uint32_t seq = 0, ack = 0;
  uint8_t flags = 0;
  uint16_t window = 0;
  uint16_t mss = 0;         ///< adds the option when above 0
  uint8_t windowShift = 0;  ///< adds the option when above 0
  ByteView payload{};
  bool sackPermitted = false;
  std::optional<TcpTimestamps> timestamps{};
  std::span<const SeqRange> sacks{};  ///< at most 4, 3 with timestamps
  ByteView otherOptions{};            ///< as they are; a multiple of 4 bytes
};
Bytes tcpPacket(const IpFields& ip, const TcpSegment& segment);
Bytes udpPacket(const IpFields& ip, uint16_t sport, uint16_t dport, ByteView payload);
/// An echo request or reply (RFC 792, RFC 4443); the payload has at least 8 bytes.
Bytes echoPacket(const IpFields& ip, bool reply, uint16_t id, uint16_t sequence, ByteView payload);

/// The options of a packet with a TCP header.
TcpOptionFields tcpOptionsOf(ByteView packet, const InnerPacket& ip);
/// The MSS option of a SYN; 0 if it has none.
uint16_t mssOf(ByteView packet, const InnerPacket& ip);
/// True when the IPv4 header checksum and the TCP, UDP or ICMP checksum are right. For other
/// protocols only the IPv4 header is checked.
bool checksumsValid(ByteView packet, const InnerPacket& ip);

/// Writes the content of a stream from `offset` on. It depends only on the seed and the offset.
void fillContent(uint64_t seed, uint64_t offset, ByteSpan out);
bool isContent(uint64_t seed, uint64_t offset, ByteView bytes);

}  // namespace braid::sim
