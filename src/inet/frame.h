#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "inet/inner_packet.h"

namespace braid {

using MacAddress = std::array<uint8_t, 6>;

/// An ARP packet for IPv4 over Ethernet (RFC 826).
struct ArpFields {
  static constexpr uint16_t kRequest = 1;
  static constexpr uint16_t kReply = 2;

  uint16_t operation = 0;
  MacAddress senderMac{};
  MacAddress targetMac{};
  Address sender;  ///< IPv4
  Address target;  ///< IPv4
};

/// What the gateway needs to know about an Ethernet frame from a TAP device (no preamble, no frame
/// check sequence).
struct Frame {
  static constexpr uint16_t kIpV4 = 0x0800;
  static constexpr uint16_t kArp = 0x0806;
  static constexpr uint16_t kVlan = 0x8100;         ///< IEEE 802.1Q
  static constexpr uint16_t kServiceVlan = 0x88a8;  ///< IEEE 802.1ad
  static constexpr uint16_t kIpV6 = 0x86dd;
  static constexpr size_t kMaxVlanTags = 2;

  MacAddress dst{};
  MacAddress src{};
  bool isMulticast = false;  ///< group bit of dst; also set for broadcast
  bool isBroadcast = false;
  uint8_t vlanTags = 0;                        ///< 0..kMaxVlanTags
  std::array<uint16_t, kMaxVlanTags> vlans{};  ///< VLAN ids (12 bits), outer first
  /// The EtherType after the VLAN tags. Below 0x600 it is an IEEE 802.3 length. With more than
  /// kMaxVlanTags tags it is that of the next tag.
  uint16_t etherType = 0;
  size_t payloadOffset = 0;  ///< first byte after etherType; within the frame or at its end
  /// The IP packet of a kIpV4 or kIpV6 frame, when well-formed. Its offsets count from
  /// payloadOffset.
  std::optional<InnerPacket> ip;
  std::optional<ArpFields> arp;  ///< for kArp when well-formed
};

/// Parses a frame. nullopt when the frame ends before its EtherType. A malformed IP packet or ARP,
/// or an IP version other than the EtherType says, is not an error: `ip` or `arp` is then empty.
std::optional<Frame> parseFrame(ByteView bytes);

}  // namespace braid
