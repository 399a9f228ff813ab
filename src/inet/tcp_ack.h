#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/packet.h"
#include "inet/flow_key.h"
#include "inet/sequence.h"
#include "inet/tcp_options.h"

namespace braid {

/// A TCP segment that only acknowledges: no data, no flag but ACK.
struct TcpAck {
  FlowKey key;  ///< the ACK's own direction
  Seq seq;
  Seq ack;
  uint16_t window = 0;     ///< as it stands in the header, unscaled
  uint8_t hopLimit = 64;   ///< TTL for IPv4
  uint8_t dscp = 0;        ///< 0..63
  uint32_t flowLabel = 0;  ///< 20 bits, IPv6 only (RFC 6437)
  std::optional<TcpTimestamps> timestamps;
  std::span<const SeqRange> sacks;  ///< at most 4, 3 with timestamps; further ones are left out
};

/// The whole IP packet, not ECN-capable (RFC 3168 section 6.1.4), with DF; checksums are right. An empty
/// handle when the pool is exhausted or its packets are too small, or the key is of no IP family.
Packet buildTcpAck(PacketPool& pool, const TcpAck& ack);

}  // namespace braid
