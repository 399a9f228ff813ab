#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/bytes.h"
#include "base/packet.h"
#include "inet/addresses.h"

/// Numbers of the IP protocol suite that more than one file needs.
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

/// The IP version field of a packet, which must not be empty.
constexpr unsigned version(const uint8_t* packet) {
  return packet[0] >> 4;
}

}  // namespace braid::ip

namespace braid {

/// The Internet checksum (RFC 1071). A "sum" here is a sum of 16-bit words in network order that is
/// not yet folded. Sums may be added to one another before foldSum(). Inputs of up to 2^32 bytes
/// cannot overflow.

/// Adds `bytes`, which begin at an even offset of the checksummed data, to `sum`. An odd last byte
/// counts as if a zero byte followed.
uint64_t sumBytes(ByteView bytes, uint64_t sum = 0);

/// Folds a sum to 16 bits with end-around carry. The result for data that include their checksum is
/// 0xffff if the checksum is valid.
uint16_t foldSum(uint64_t sum);

/// The value for the checksum field of `bytes`, in which that field must be zero.
uint16_t internetChecksum(ByteView bytes);

/// The sum of the pseudo header of TCP, UDP (RFC 9293 section 3.1, RFC 768) and, for IPv6, ICMPv6
/// (RFC 8200 section 8.1). Both addresses must be of one family. `length` is that of the transport
/// header and payload, in bytes.
uint64_t pseudoHeaderSum(const Address& src, const Address& dst, uint8_t protocol, uint32_t length);

/// The value for the checksum field of a TCP, UDP or ICMPv6 `segment`, in which that field must be
/// zero. For UDP the caller must send 0xffff when this is 0 (RFC 768).
uint16_t transportChecksum(const Address& src, const Address& dst, uint8_t protocol,
                           ByteView segment);

/// The checksum after a 16-bit word at an even offset changed from `before` to `after` (RFC 1624
/// equation 3). A checksum that was wrong stays wrong. For a word at an odd offset pass both values
/// byte-swapped (RFC 1071 section 2B).
uint16_t updateChecksum(uint16_t checksum, uint16_t before, uint16_t after);

/// Writes a 16-bit word at field[0..1], which lies at an even offset of the checksummed data, and
/// updates the checksum accordingly.
void replaceWord(uint8_t* field, uint16_t value, uint8_t* checksum);

}  // namespace braid

namespace braid {

/// Access to the ECN field of an IP packet (RFC 3168 section 5). These functions take a whole IPv4
/// or IPv6 packet. They leave anything else alone, and anything shorter than the fixed header.

/// nullopt when this is not an IP packet.
std::optional<Ecn> readEcn(ByteView packet);

/// Sets the field and updates the IPv4 header checksum. False when this is not an IP packet.
bool setEcn(ByteSpan packet, Ecn ecn);

/// Marks Congestion Experienced. True when the packet now carries CE. False when it is not
/// ECN-capable, or not an IP packet: the caller then drops it instead (RFC 3168 section 5).
bool markCe(ByteSpan packet);

}  // namespace braid

namespace braid {

/// How an IPv4 packet is fragmented (RFC 791 section 3.2).
struct FragmentPlan {
  size_t size = 0;   ///< of the whole packet, bytes
  size_t step = 0;   ///< payload bytes of each fragment except the last; a multiple of 8
  size_t count = 0;  ///< at least 1
};

/// The smallest MTU that IPv4 allows (RFC 791 section 3.2), bytes. It bounds a packet to 1366
/// fragments.
inline constexpr uint16_t kMinimumV4Mtu = 68;

/// Plans the fragmentation of a packet. A packet that fits the MTU is one "fragment", whatever its
/// flags. nullopt when the packet is not well-formed IPv4, must be fragmented but has DF or IP
/// options, would end beyond the largest fragment offset, or is a fragment with more to follow
/// whose payload is not a multiple of 8, or when the MTU is below kMinimumV4Mtu.
std::optional<FragmentPlan> planFragments(ByteView packet, uint16_t mtu);

/// Builds fragment `index` of `plan`, which must come from planFragments(packet). An empty handle
/// when the pool is exhausted or its packets are too small. The header checksum is updated, not
/// recomputed, so that a wrong one stays wrong.
Packet buildFragment(PacketPool& pool, ByteView packet, const FragmentPlan& plan, size_t index);

enum class FragmentResult : uint8_t {
  kDone,      ///< all fragments were given to the sink
  kRefused,   ///< planFragments() gave nullopt; nothing was given to the sink
  kNoBuffer,  ///< the pool has too few packets; nothing was given to the sink, unless the sink
              ///< takes packets from the pool, too
};

/// Calls sink(Packet) for each fragment of the packet, in order. Each has at most `mtu` bytes.
template <typename Sink>
FragmentResult fragmentIpv4(PacketPool& pool, ByteView packet, uint16_t mtu, Sink&& sink) {
  auto plan = planFragments(packet, mtu);
  if (!plan) return FragmentResult::kRefused;
  if (plan->count > pool.limit() - pool.inUse()) return FragmentResult::kNoBuffer;
  for (size_t i = 0; i < plan->count; ++i) {
    Packet fragment = buildFragment(pool, packet, *plan, i);
    if (!fragment) return FragmentResult::kNoBuffer;
    sink(std::move(fragment));
  }
  return FragmentResult::kDone;
}

}  // namespace braid
