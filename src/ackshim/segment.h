#pragma once

#include <cstdint>
#include <utility>

#include "ackshim/options.h"
#include "base/bytes.h"
#include "base/containers.h"
#include "base/packet.h"
#include "base/time.h"
#include "inet/flow_key.h"
#include "inet/inner_packet.h"
#include "inet/ip.h"
#include "inet/tcp.h"

namespace braid {

/// A time stamp in 32 bits: microseconds that wrap every 71 minutes. Only stamps less than 35
/// minutes apart may be compared. Flows are forgotten before that (AckShimOptions::kMaxIdle).
struct Timestamp32 {
  uint32_t us = 0;

  static constexpr Timestamp32 of(Time t) {
    return {static_cast<uint32_t>(t.time_since_epoch() / 1us)};
  }
  friend constexpr Duration operator-(Timestamp32 a, Timestamp32 b) {
    return 1us * static_cast<int32_t>(a.us - b.us);
  }
  friend constexpr Timestamp32 operator+(Timestamp32 s, Duration d) {
    return {s.us + static_cast<uint32_t>(d / 1us)};
  }
};

/// The later of two stamps.
constexpr Timestamp32 latest(Timestamp32 a, Timestamp32 b) {
  return a - b > Duration(0) ? a : b;
}

/// What the shim needs from a TCP segment.
struct TcpSegment {
  Seq seq;
  Seq end;  ///< one after the last byte; SYN and FIN count as bytes
  Seq ack;
  uint32_t length = 0;  ///< payload bytes
  uint16_t window = 0;  ///< unscaled
  uint8_t flags = 0;
  uint8_t hopLimit = 0;
  uint8_t dscp = 0;
  uint32_t flowLabel = 0;  ///< 0 for IPv4
  TcpOptionFields options;

  bool isSyn() const { return flags & TcpFields::kSyn; }
  bool isFin() const { return flags & TcpFields::kFin; }
  bool isRst() const { return flags & TcpFields::kRst; }
  bool isAck() const { return flags & TcpFields::kAck; }
  bool hasData() const { return length > 0 || isFin(); }
  /// Whether it has a D-SACK (RFC 2883 section 4): the first block is below the ACK, or within the
  /// second block.
  bool hasDsack() const {
    if (options.sackCount == 0) return false;
    const SeqRange& first = options.sacks[0];
    if (first.end <= ack) return true;
    if (options.sackCount == 1) return false;
    const SeqRange& second = options.sacks[1];
    return first.begin >= second.begin && first.end <= second.end;
  }
};

/// `parsed` must be parseInnerPacket(packet), and have `tcp`.
inline TcpSegment readSegment(ByteView packet, const InnerPacket& parsed) {
  const TcpFields& tcp = *parsed.tcp;
  TcpSegment s;
  s.seq = {tcp.seq};
  s.end = s.seq + tcp.payloadLength + (tcp.isSyn() ? 1 : 0) + (tcp.isFin() ? 1 : 0);
  s.ack = {tcp.ack};
  s.length = tcp.payloadLength;
  s.window = tcp.window;
  s.flags = tcp.flags;
  s.hopLimit = parsed.hopLimit;
  s.dscp = parsed.dscp;
  s.flowLabel = parsed.isV6() ? load32(packet.data()) & 0xfffff : 0;
  constexpr size_t kFixed = 20;
  if (tcp.headerLength > kFixed) {
    s.options =
        parseTcpOptions(packet.subspan(parsed.l4Offset + kFixed, tcp.headerLength - kFixed));
  }
  return s;
}

/// What the shim asks the tunnel. It asks rarely: one round trip before it would speak, and when it
/// would. This is a call upward, because the shim needs the answer of that moment.
class FlowActivityQuery {
 public:
  virtual ~FlowActivityQuery() = default;
  /// Whether packets of this inner flow are still in the tunnel: queued, sent but not known to have
  /// left the far gateway, or being repaired. `key` is that of the local host's packets.
  virtual bool isCarrying(const FlowKey& key) const = 0;
};

/// Holds the packets that the shim made until they are polled. When the pool is exhausted, a packet
/// is not made, and `noBuffer` counts it.
class ShimOutbox {
 public:
  /// `pool` and `counters` must outlive this.
  ShimOutbox(PacketPool& pool, ShimCounters& counters) : pool_(pool), counters_(counters) {}

  /// Queues a copy of the packet, made not ECN-capable (RFC 3168 section 6.1.5) unless it carries a
  /// CE mark, which stays. False when no buffer is free.
  bool replayToHost(ByteView packet) { return replay(toHost_, packet); }
  bool replayToPeer(ByteView packet) { return replay(toPeer_, packet); }
  /// Queues an ACK for the local host. False when no buffer is free.
  bool acknowledge(const TcpAck& ack);

  /// Removes and returns the oldest packet; an empty handle when there is none.
  Packet pollToHost() { return poll(toHost_); }
  Packet pollToPeer() { return poll(toPeer_); }

 private:
  bool replay(Ring<Packet>& ring, ByteView packet);
  bool push(Ring<Packet>& ring, Packet packet);
  static Packet poll(Ring<Packet>& ring);

  PacketPool& pool_;
  ShimCounters& counters_;
  Ring<Packet> toHost_;
  Ring<Packet> toPeer_;
};

inline bool ShimOutbox::replay(Ring<Packet>& ring, ByteView packet) {
  Packet copy = pool_.copy(packet);
  if (copy && readEcn(copy.view()) != Ecn::kCe) setEcn(copy.span(), Ecn::kNotEct);
  return push(ring, std::move(copy));
}

inline bool ShimOutbox::acknowledge(const TcpAck& ack) {
  return push(toHost_, buildTcpAck(pool_, ack));
}

inline bool ShimOutbox::push(Ring<Packet>& ring, Packet packet) {
  if (!packet) {
    ++counters_.noBuffer;
    return false;
  }
  ring.pushBack(std::move(packet));
  return true;
}

inline Packet ShimOutbox::poll(Ring<Packet>& ring) {
  if (ring.empty()) return {};
  return ring.takeFront();
}

}  // namespace braid
