#pragma once

#include "ackshim/counters.h"
#include "base/packet.h"
#include "base/ring.h"
#include "inet/tcp_ack.h"

namespace braid {

/// The packets that the shim made, until they are polled. Where the pool is exhausted there is none, and
/// `noBuffer` counts it.
class ShimOutbox {
 public:
  /// Both must outlive it.
  ShimOutbox(PacketPool& pool, ShimCounters& counters) : pool_(pool), counters_(counters) {}

  /// The packet again, not ECN-capable (RFC 3168 section 6.1.5); a mark that it got on its way stays. False
  /// when there is no buffer.
  bool replayToHost(ByteView packet) { return replay(toHost_, packet); }
  bool replayToPeer(ByteView packet) { return replay(toPeer_, packet); }
  /// An ACK for the local host. False when there is no buffer.
  bool acknowledge(const TcpAck& ack);

  /// The oldest; empty when there is none.
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

}  // namespace braid
