#pragma once

#include "ackshim/counters.h"
#include "base/containers.h"
#include "base/packet.h"
#include "inet/flow_key.h"
#include "inet/tcp.h"

namespace braid {

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

}  // namespace braid
