#pragma once

#include <cstddef>
#include <cstdint>

/// Numbers of the IP protocols that more than one file needs.
namespace braid::ip {

// IANA protocol numbers.
inline constexpr uint8_t kHopByHop = 0;
inline constexpr uint8_t kIcmp = 1;
inline constexpr uint8_t kTcp = 6;
inline constexpr uint8_t kUdp = 17;
inline constexpr uint8_t kDccp = 33;
inline constexpr uint8_t kRouting = 43;
inline constexpr uint8_t kFragment = 44;
inline constexpr uint8_t kEsp = 50;
inline constexpr uint8_t kAuthentication = 51;
inline constexpr uint8_t kIcmpV6 = 58;
inline constexpr uint8_t kNoNextHeader = 59;
inline constexpr uint8_t kDestinationOptions = 60;
inline constexpr uint8_t kSctp = 132;
inline constexpr uint8_t kMobility = 135;
inline constexpr uint8_t kUdpLite = 136;
inline constexpr uint8_t kHip = 139;
inline constexpr uint8_t kShim6 = 140;

// Header sizes, bytes.
inline constexpr size_t kV4Header = 20;   ///< RFC 791 section 3.1, without options
inline constexpr size_t kV6Header = 40;   ///< RFC 8200 section 3
inline constexpr size_t kTcpHeader = 20;  ///< RFC 9293 section 3.1, without options
inline constexpr size_t kUdpHeader = 8;   ///< RFC 768

// Offsets into the IPv4 header, bytes (RFC 791 section 3.1).
inline constexpr size_t kV4TotalLength = 2;
inline constexpr size_t kV4Identification = 4;
inline constexpr size_t kV4Fragment = 6;
inline constexpr size_t kV4Checksum = 10;

/// Offset into the IPv6 header, bytes (RFC 8200 section 3).
inline constexpr size_t kV6PayloadLength = 4;

// Offsets into the TCP header, bytes (RFC 9293 section 3.1).
inline constexpr size_t kTcpSequence = 4;
inline constexpr size_t kTcpFlags = 13;
inline constexpr size_t kTcpChecksum = 16;

// Offsets into the UDP header, bytes (RFC 768).
inline constexpr size_t kUdpLength = 4;
inline constexpr size_t kUdpChecksum = 6;

// The IPv4 fragment field (RFC 791 section 3.1).
inline constexpr uint16_t kV4DontFragment = 0x4000;
inline constexpr uint16_t kV4MoreFragments = 0x2000;
inline constexpr uint16_t kV4FragmentOffset = 0x1fff;  ///< in units of 8 bytes

/// The version field of a packet that is not empty.
constexpr unsigned version(const uint8_t* packet) {
  return packet[0] >> 4;
}

}  // namespace braid::ip
