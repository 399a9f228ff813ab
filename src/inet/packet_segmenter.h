#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "inet/inner_packet.h"

namespace braid {

/// Cuts a TCP packet that is larger than its path takes into segments, as the kernel does when a network card cannot
/// (TCP segmentation offload), or a UDP packet that stands for several into datagrams. Each has the packet's headers,
/// with these changes: lengths, sequence number and checksums are its own, the IPv4 identification counts up, FIN and
/// PSH are on the last one only, CWR on the first one only (RFC 3168 section 6.1.2).
///
///     for (size_t size; (size = segments.nextSize()) > 0;) segments.write(room of that size);
class PacketSegmenter {
 public:
  /// More segments than this are of nobody who means well: a read of 64 KB that a guest behind a bridge wants in bytes
  /// would take all buffers there are. Ours: the least segment that Linux makes of TCP itself has 48 bytes.
  static constexpr size_t kMost = 2048;

  /// `packet` begins with `linkHeader` bytes that each segment repeats, an IP header behind them, and must outlive
  /// this; its transport checksum is the sum of the pseudo header, as for completeChecksum(). `payload`: bytes of
  /// transport payload in each segment but the last. nullopt when it is no whole TCP or UDP packet with payload,
  /// `payload` is 0, or there would be more than kMost.
  static std::optional<PacketSegmenter> of(ByteView packet, size_t linkHeader, size_t payload);

  /// How many there are.
  size_t count() const { return (data_.size() + payload_ - 1) / payload_; }
  /// Bytes of the next one, link header included; 0 after the last.
  size_t nextSize() const { return offset_ < data_.size() ? headers_.size() + nextPayload() : 0; }
  /// Writes the next one and goes on to the one behind it.
  void write(uint8_t* out);
  /// Goes on without writing it.
  void skip() { offset_ += nextPayload(); }

 private:
  PacketSegmenter() = default;
  size_t nextPayload() const;
  uint16_t checksumOf(ByteView segment, uint16_t ofWhole) const;
  void writeIp(uint8_t* ip, size_t length) const;
  void writeTcp(uint8_t* tcp) const;

  InnerPacket ip_;
  size_t linkHeader_ = 0;
  ByteView headers_;  ///< link, IP and transport
  ByteView data_;
  size_t payload_ = 0;
  size_t offset_ = 0;  ///< into data_
};

/// Fills in a transport checksum that the kernel left to the network card: the field, which is `offset` bytes behind
/// `start`, holds the sum of the pseudo header, and everything from `start` on belongs to it. False when the field is
/// not within the packet.
bool completeChecksum(ByteSpan packet, size_t start, size_t offset);

}  // namespace braid
