#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "ackshim/ack_shim.h"
#include "tests/unit/inet/packets.h"

/// A gateway's ack shim between a local host and a peer's host, driven packet by packet.
namespace braid::test {

inline constexpr uint32_t kHostIsn = 1000;
inline constexpr uint32_t kPeerIsn = 5000;

struct Seg {
  uint32_t seq = 0;
  uint32_t ack = 0;
  size_t length = 0;
  uint8_t flags = TcpFields::kAck;
  uint16_t window = 1000;
  std::optional<TcpTimestamps> ts = {};
  std::vector<SeqRange> sacks = {};
  Bytes options = {};  ///< before timestamps and SACK; a multiple of 4 bytes
};

inline void append32(Bytes& b, uint32_t v) {
  b.resize(b.size() + 4);
  store32(&b[b.size() - 4], v);
}

/// The IP packet of a segment from the local host (10.0.0.1:443) or, reversed, to it.
inline Bytes packetOf(const Seg& s, bool fromHost, bool v6 = false, uint8_t tos = 0,
                      uint16_t hostPort = 443) {
  Tcp h{.sport = hostPort, .dport = 5000, .seq = s.seq, .flags = s.flags, .options = s.options};
  if (!fromHost) std::swap(h.sport, h.dport);
  if (s.ts) {
    append(h.options, {1, 1, 8, 10});
    append32(h.options, s.ts->value);
    append32(h.options, s.ts->echo);
  }
  if (!s.sacks.empty()) {
    append(h.options, {1, 1, 5, static_cast<uint8_t>(2 + 8 * s.sacks.size())});
    for (SeqRange r : s.sacks) append32(h.options, r.begin.value), append32(h.options, r.end.value);
  }
  h.payload = pattern(s.length);
  Bytes segment = tcp(h);
  store32(&segment[8], s.ack);
  store16(&segment[14], s.window);
  if (v6) {
    V6 outer{.nextHeader = ip::kTcp, .trafficClass = tos};
    if (!fromHost) std::swap(outer.src, outer.dst);
    return braid::test::v6(outer, withTcpChecksum(segment, outer.src, outer.dst));
  }
  V4 outer{.protocol = ip::kTcp, .tos = tos, .fragment = ip::kV4DontFragment};
  if (!fromHost) std::swap(outer.src, outer.dst);
  return v4(outer, withTcpChecksum(segment, outer.src, outer.dst));
}

/// The packets that a sender or receiver gets from the shim.
struct Emitted {
  Bytes bytes;
  InnerPacket ip;
  TcpOptionFields options;
  uint32_t ack() const { return ip.tcp->ack; }
  uint32_t seq() const { return ip.tcp->seq; }
  std::vector<SeqRange> sacks() const {
    return {options.sacks.begin(), options.sacks.begin() + options.sackCount};
  }
};

class Rig : public FlowActivityQuery {
 public:
  explicit Rig(const AckShimOptions& options = {}, uint64_t seed = 1)
      : pool_(2000, 4096), shim(options, pool_, this, {1, seed}) {}

  bool isCarrying(const FlowKey&) const override { return carrying; }

  void host(const Seg& s) { hostPacket(packetOf(s, true, v6)); }
  void hostPacket(const Bytes& b) { shim.onFromHost(b, parseInnerPacket(b).value(), now); }
  AckShim::Verdict peer(const Seg& s, uint8_t tos = 0) {
    return peerPacket(packetOf(s, false, v6, tos));
  }
  AckShim::Verdict peerPacket(const Bytes& b) {
    return shim.onToHost(b, parseInnerPacket(b).value(), now);
  }
  void tunnelDrops(const Seg& s) {
    Bytes b = packetOf(s, true, v6);
    shim.onTunnelDropped(b, parseInnerPacket(b).value(), now);
  }

  /// Runs the timers up to now + d.
  void pass(Duration d) {
    Time end = now + d;
    while (shim.nextDeadline() <= end) {
      now = std::max(now, shim.nextDeadline());
      shim.onTimer(now);
    }
    now = end;
    shim.onTimer(now);
  }
  /// Runs until the shim sends something or `limit` has passed. Returns the elapsed time.
  Duration passUntilSpoken(Duration limit) {
    Time begin = now, end = now + limit;
    collect();
    while (toHost.empty() && toPeer.empty() && shim.nextDeadline() <= end) {
      now = std::max(now, shim.nextDeadline());
      shim.onTimer(now);
      collect();
    }
    if (toHost.empty() && toPeer.empty()) now = end;
    return now - begin;
  }
  std::vector<Emitted> takeToHost() {
    collect();
    return std::exchange(toHost, {});
  }
  std::vector<Emitted> takeToPeer() {
    collect();
    return std::exchange(toPeer, {});
  }

  struct Opening {
    bool sack = true;
    bool timestamps = false;
    Duration rtt = 10ms;  ///< from this gateway to the far host and back
    Duration leg = 2ms;   ///< from this gateway to the local host and back
    bool byPeer = false;  ///< the peer's host begins
  };
  /// Does a handshake with window shift 7. Afterwards the hosts send from kHostIsn + 1 and kPeerIsn
  /// + 1.
  void open(const Opening& o) {
    Bytes options{2, 4, 5, 0xb4, 1, 3, 3, 7};
    if (o.sack) append(options, {1, 1, 4, 2});
    auto ts = [&](uint32_t value, uint32_t echo) {
      return o.timestamps ? std::optional(TcpTimestamps{value, echo}) : std::nullopt;
    };
    Seg syn{.flags = TcpFields::kSyn, .ts = ts(100, 0), .options = options};
    Seg synAck{.flags = TcpFields::kSyn | TcpFields::kAck,
               .window = synWindow,
               .ts = ts(700, 100),
               .options = options};
    if (o.byPeer) {
      syn.seq = kPeerIsn, synAck.seq = kHostIsn, synAck.ack = kPeerIsn + 1;
      (void)peer(syn);
      pass(o.leg);
      host(synAck);
      pass(o.rtt);
      (void)peer({.seq = kPeerIsn + 1, .ack = kHostIsn + 1, .ts = ts(100, 700)});
    } else {
      syn.seq = kHostIsn, synAck.seq = kPeerIsn, synAck.ack = kHostIsn + 1;
      host(syn);
      pass(o.rtt);
      (void)peer(synAck);
      pass(o.leg);
      host({.seq = kHostIsn + 1, .ack = kPeerIsn + 1, .ts = ts(100, 700)});
    }
  }
  /// Sends segments [first, last) of the local host, 1000 bytes each.
  void hostSends(uint32_t first, uint32_t last) {
    for (uint32_t i = first; i < last; ++i) host(hostSeg(i));
  }
  static Seg hostSeg(uint32_t i) {
    return {.seq = kHostIsn + 1 + i * 1000, .ack = kPeerIsn + 1, .length = 1000};
  }
  static Seg peerSeg(uint32_t i) {
    return {.seq = kPeerIsn + 1 + i * 1000, .ack = kHostIsn + 1, .length = 1000};
  }
  void peerSends(uint32_t first, uint32_t last) {
    for (uint32_t i = first; i < last; ++i) (void)peer(peerSeg(i));
  }
  /// The peer acknowledges that many segments.
  AckShim::Verdict peerAcks(uint32_t segments, std::vector<SeqRange> sacks = {}) {
    return peer(
        {.seq = kPeerIsn + 1, .ack = kHostIsn + 1 + segments * 1000, .sacks = std::move(sacks)});
  }
  void hostAcks(uint32_t segments, std::vector<SeqRange> sacks = {}) {
    host({.seq = kHostIsn + 1, .ack = kPeerIsn + 1 + segments * 1000, .sacks = std::move(sacks)});
  }
  static SeqRange hostRange(uint32_t first, uint32_t last) {
    return {{kHostIsn + 1 + first * 1000}, {kHostIsn + 1 + last * 1000}};
  }
  const ShimFlow* flow() {
    Bytes b = packetOf({}, true, v6);
    return shim.find(parseInnerPacket(b)->flowKey());
  }
  const ActuatorCounts& count(Actuator a) const { return shim.counters()[a]; }

 private:
  void collect() {
    auto drain = [](auto next, std::vector<Emitted>& to) {
      while (Packet p = next()) {
        Emitted e{Bytes(p.view().begin(), p.view().end()), parseInnerPacket(p.view()).value(), {}};
        size_t begin = e.ip.l4Offset + 20, end = e.ip.l4Offset + e.ip.tcp->headerLength;
        e.options = parseTcpOptions(ByteView(e.bytes).subspan(begin, end - begin));
        to.push_back(std::move(e));
      }
    };
    drain([&] { return shim.pollToHost(); }, toHost);
    drain([&] { return shim.pollToPeer(); }, toPeer);
  }

  PacketPool pool_;

 public:
  AckShim shim;
  Time now{1s};
  uint16_t synWindow = 1000;  ///< of the SYN-ACK of open(): 7 with its shift
  bool carrying = false;
  bool v6 = false;

 private:
  std::vector<Emitted> toHost;
  std::vector<Emitted> toPeer;
};

}  // namespace braid::test
