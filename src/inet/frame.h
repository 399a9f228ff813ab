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

/// What the gateway wants to know of an Ethernet frame from a TAP device (no preamble, no check sequence).
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
  uint16_t etherType =
      0;  ///< behind the tags; below 0x600 it is an IEEE 802.3 length, above two tags it is kVlan
  size_t payloadOffset = 0;  ///< first byte behind etherType; lies within the frame or at its end
  std::optional<InnerPacket>
      ip;  ///< for kIpV4 and kIpV6 when well-formed; its offsets count from payloadOffset
  std::optional<ArpFields> arp;  ///< for kArp when well-formed
};

/// nullopt when the frame ends before its EtherType. An IP packet or ARP that is malformed or of another
/// version than the EtherType says is no error: `ip` or `arp` is missing then.
std::optional<Frame> parseFrame(ByteView bytes);

}  // namespace braid
