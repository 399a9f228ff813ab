#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "inet/inner_packet.h"
#include "inet/ip.h"

namespace braid {

/// Cuts a TCP packet that is larger than its path allows into segments, as the kernel does when a
/// network card cannot (TCP segmentation offload). Also cuts a UDP packet that stands for several
/// datagrams into these. Each piece has the packet's headers with these changes: lengths, sequence
/// number and checksums are its own; the IPv4 identification counts up; FIN and PSH are set on the
/// last one only, CWR on the first one only (RFC 3168 section 6.1.2).
///
///     for (size_t size; (size = segments.nextSize()) > 0;) segments.write(room of that size);
class PacketSegmenter {
 public:
  /// Limit on the number of segments, against abuse: a guest behind a bridge could ask for a read
  /// of 64 KB to be cut into single bytes, which would take all packet buffers. Chosen above what
  /// is needed: the smallest segment that Linux itself makes of TCP has 48 bytes.
  static constexpr size_t kMost = 2048;

  /// `packet` must outlive this. It begins with `linkHeader` bytes that each segment repeats,
  /// followed by an IP header. Its transport checksum field holds the sum of the pseudo header, as
  /// for completeChecksum(). `payload`: bytes of transport payload in each segment except the last.
  /// nullopt when `packet` is not a whole TCP or UDP packet with payload, when `payload` is 0, or
  /// when there would be more than kMost segments.
  static std::optional<PacketSegmenter> of(ByteView packet, size_t linkHeader, size_t payload);

  /// The number of segments.
  size_t count() const { return (data_.size() + payload_ - 1) / payload_; }
  /// Size of the next segment in bytes, link header included; 0 after the last.
  size_t nextSize() const { return offset_ < data_.size() ? headers_.size() + nextPayload() : 0; }
  /// Writes the next segment and advances to the one after it.
  void write(uint8_t* out);
  /// Advances without writing the next segment.
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

/// Fills in a transport checksum that the kernel left to the network card. The checksum field lies
/// `offset` bytes after `start` and holds the sum of the pseudo header; the checksum covers
/// everything from `start` on. False when the field is not within the packet.
bool completeChecksum(ByteSpan packet, size_t start, size_t offset);

/// What a kernel must be told about a TCP or UDP packet that stands for several (virtio 1.2 section
/// 5.1.6.2).
struct RunOffload {
  bool isV6 = false;
  bool isUdp = false;
  uint16_t headers = 0;         ///< bytes of link, IP and transport header
  uint16_t payload = 0;         ///< payload bytes of each packet except the last
  uint16_t checksumStart = 0;   ///< where the transport header begins
  uint16_t checksumOffset = 0;  ///< the checksum field, from checksumStart
};

/// Merges consecutive TCP segments, or UDP datagrams, of one flow into one large packet for the
/// kernel, from which the kernel could make each of them again (generic receive offload). They must
/// have equal headers, for TCP consecutive sequence numbers, and equal length except for the last
/// one. A packet with a wrong checksum never becomes part of a run, because the kernel would then
/// take it for a valid one. The checksum of the first packet is verified when a second one comes; a
/// packet that stays alone is passed on unchanged.
///
/// Use: begin(a), extend(b), extend(c), and so on. When extend(p) returns false, the run is
/// complete, and p is either a packet by itself or begins another run. finish(a) then makes a's
/// headers those of the whole run; the payloads of b and c follow it in the write.
class PacketRun {
 public:
  /// The most datagrams that Linux accepts in one UDP packet, and more fragments than it keeps in
  /// one packet.
  static constexpr size_t kMost = 64;
  static constexpr size_t kMostBytes = 65535;

  /// Packets begin with `linkHeader` bytes of link header, which must be equal in all packets of a
  /// run. Its last two bytes are an EtherType. 0: no link header.
  explicit PacketRun(size_t linkHeader) : linkHeader_(linkHeader) {}
  /// Whether UDP datagrams may form a run. Default: no.
  void setTakesUdp(bool takes) { takesUdp_ = takes; }

  /// Starts a new run with this packet, which must not move in memory until finish(). False when it
  /// cannot be part of a run.
  bool begin(ByteView packet);
  /// Appends the packet to the run if it continues it. True when it did.
  bool extend(ByteView packet);
  /// The number of packets in the run; 0 when there is no run.
  size_t count() const { return count_; }
  void clear() { count_ = 0, ended_ = true; }
  /// Bytes of link, IP and transport header of each packet; at most kMostHeaders.
  size_t headers() const { return headers_; }
  static constexpr size_t kMostHeaders = 128;
  /// What the run's packets are.
  enum class Kind : uint8_t { kTcpV4, kTcpV6, kUdpV4, kUdpV6, kCount };
  Kind kind() const {
    bool isV6 = ipHeader_ == ip::kV6Header;
    if (isTcp()) return isV6 ? Kind::kTcpV6 : Kind::kTcpV4;
    return isV6 ? Kind::kUdpV6 : Kind::kUdpV4;
  }
  /// Rewrites the headers of the run's first packet for the whole run: lengths and flags are those
  /// of the whole, and the transport checksum field is set to the sum of the pseudo header, which
  /// the kernel completes.
  RunOffload finish(ByteSpan first) const;

 private:
  bool isLike(ByteView packet) const;
  bool isNextSegment(ByteView a, ByteView b) const;
  bool isTcp() const { return protocol_ == ip::kTcp; }
  size_t l4Offset() const { return linkHeader_ + ipHeader_; }

  size_t linkHeader_;
  bool takesUdp_ = false;
  ByteView first_;
  uint8_t protocol_ = ip::kTcp;
  size_t ipHeader_ = 0, headers_ = 0;
  size_t payload_ = 0;  ///< payload bytes of the first packet
  size_t bytes_ = 0;    ///< payload bytes of all packets
  size_t count_ = 0;
  bool ended_ = true;  ///< no packet may be appended
  bool push_ = false;
};

/// A hash that all packets of a TCP or UDP flow share, and few other flows. It selects a run per
/// flow, so that runs of several flows can grow at the same time. `linkHeader` as for PacketRun.
/// nullopt when the packet is not a whole TCP or UDP packet with plain headers (fragments, IPv4
/// options, IPv6 extension headers).
std::optional<uint32_t> runNumber(ByteView packet, size_t linkHeader);

/// For a packet for which runNumber() gives nullopt: whether it may still belong to a flow that has
/// a number, so that it must be written after everything that came before it. False only for a
/// whole IP packet with another protocol in its IP header.
bool mayBeOfSomeRun(ByteView packet, size_t linkHeader);

}  // namespace braid
