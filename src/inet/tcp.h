#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/packet.h"
#include "inet/flow_key.h"
#include "inet/inner_packet.h"

namespace braid {

/// A TCP sequence number (RFC 9293 section 3.4): 32 bits that wrap. Comparison is meaningful for
/// numbers less than 2^31 apart, which all numbers of one window are. It is not transitive, so not
/// an ordering of arbitrary numbers.
struct Seq {
  uint32_t value = 0;

  constexpr bool operator==(const Seq&) const = default;
  friend constexpr Seq operator+(Seq s, uint32_t n) { return {s.value + n}; }
  /// a minus b; negative when a comes before b.
  friend constexpr int32_t operator-(Seq a, Seq b) {
    return static_cast<int32_t>(a.value - b.value);
  }
  friend constexpr bool operator<(Seq a, Seq b) { return a - b < 0; }
  friend constexpr bool operator>(Seq a, Seq b) { return a - b > 0; }
  friend constexpr bool operator<=(Seq a, Seq b) { return a - b <= 0; }
  friend constexpr bool operator>=(Seq a, Seq b) { return a - b >= 0; }
};

/// A half-open range of sequence numbers: `end` is one after the last.
struct SeqRange {
  Seq begin;
  Seq end;
  constexpr bool operator==(const SeqRange&) const = default;
  constexpr bool empty() const { return begin == end; }
};

/// TCP option kinds (RFC 9293 section 3.2, RFC 7323, RFC 2018).
namespace tcpopt {
inline constexpr uint8_t kEnd = 0;
inline constexpr uint8_t kNoOperation = 1;
inline constexpr uint8_t kMss = 2;
inline constexpr uint8_t kWindowScale = 3;
inline constexpr uint8_t kSackPermitted = 4;
inline constexpr uint8_t kSack = 5;
inline constexpr uint8_t kTimestamps = 8;
}  // namespace tcpopt

/// Calls visit(kind, offset, length) for every option except padding; offset and length are those
/// of the option's value within `options`. Stops at the first malformed option, as receivers do.
template <typename F>
void forEachTcpOption(ByteView options, F&& visit) {
  for (size_t at = 0; at < options.size() && options[at] != tcpopt::kEnd;) {
    if (options[at] == tcpopt::kNoOperation) {
      ++at;
      continue;
    }
    if (options.size() - at < 2) return;
    size_t length = options[at + 1];
    if (length < 2 || length > options.size() - at) return;
    visit(options[at], at + 2, length - 2);
    at += length;
  }
}

/// The values of the timestamps option (RFC 7323 section 3.2).
struct TcpTimestamps {
  uint32_t value = 0;  ///< TSval
  uint32_t echo = 0;   ///< TSecr
  bool operator==(const TcpTimestamps&) const = default;
};

/// The options that Braid reads. If an option occurs twice, the last value counts. An option of a
/// wrong length is ignored.
struct TcpOptionFields {
  static constexpr size_t kMaxSacks = 4;

  std::optional<uint16_t> mss;         ///< RFC 9293 section 3.7.1
  std::optional<uint8_t> windowShift;  ///< 0..14; larger values count as 14 (RFC 7323 section 2.3)
  bool sackPermitted = false;          ///< RFC 2018 section 2
  std::optional<TcpTimestamps> timestamps;
  uint8_t sackCount = 0;  ///< RFC 2018 section 3
  std::array<SeqRange, kMaxSacks> sacks{};
};

/// Parses `options`, the bytes between the fixed TCP header and the payload.
TcpOptionFields parseTcpOptions(ByteView options);

/// A pure ACK: a TCP segment without data and without flags other than ACK.
struct TcpAck {
  FlowKey key;  ///< the ACK's own direction
  Seq seq;
  Seq ack;
  uint16_t window = 0;     ///< the header field, unscaled
  uint8_t hopLimit = 64;   ///< TTL for IPv4
  uint8_t dscp = 0;        ///< 0..63
  uint32_t flowLabel = 0;  ///< 20 bits, IPv6 only (RFC 6437)
  std::optional<TcpTimestamps> timestamps;
  std::span<const SeqRange> sacks;  ///< at most 4 are sent, 3 with timestamps
};

/// Builds the whole IP packet with valid checksums and DF, not ECN-capable (RFC 3168 section
/// 6.1.4). An empty handle when the pool is exhausted or its packets are too small, or when the key
/// has no IP family.
Packet buildTcpAck(PacketPool& pool, const TcpAck& ack);

/// Whether the packet, of which nothing is known, is a TCP segment that begins a connection: SYN
/// without ACK, RST and FIN. False for one behind IPv6 extension headers, and for a later fragment.
bool isTcpConnect(ByteView packet);

/// Builds the segment that refuses a connection (RFC 9293 section 3.10.7.1): RST and ACK in answer
/// to `syn`, the whole IP packet that begins it. An empty handle when that is not a TCP packet, or
/// as for buildTcpAck().
Packet buildTcpRefusal(PacketPool& pool, ByteView syn);

/// Lowers the MSS option (RFC 9293 section 3.7.1) of a TCP SYN or SYN-ACK to what fits an inner MTU
/// of `mtu` bytes without IP options: mtu - 40 for IPv4, mtu - 60 for IPv6. Updates the TCP
/// checksum. True when the packet was changed.
///
/// Never raises the MSS and never adds the option. Options are read as a receiver does, up to the
/// first malformed one: an MSS option of a wrong length, or one after a malformed option, stays as
/// it is.
bool clampMss(ByteSpan packet, uint16_t mtu);

/// clampMss() for a packet that is parsed already: `parsed` must be parseInnerPacket(packet).
bool clampMss(ByteSpan packet, const InnerPacket& parsed, uint16_t mtu);

}  // namespace braid
