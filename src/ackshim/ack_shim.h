#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ackshim/flow_table.h"
#include "ackshim/handshake_tracker.h"
#include "ackshim/options.h"
#include "ackshim/receiver_replay.h"
#include "ackshim/segment.h"
#include "ackshim/sender_wakeup.h"
#include "base/packet.h"
#include "base/random.h"
#include "inet/inner_packet.h"

namespace braid {

/// Wakes unmodified TCP senders after losses that they would otherwise notice only by their
/// retransmission timer, after 200 ms or more (docs/ackshim.md). It stands on every gateway between
/// the local hosts and the tunnel, and sees the packets of both directions.
///
///   setters  setOptions
///   on...    onFromHost, onToHost for every packet; onTunnelDropped; onTimer at nextDeadline()
///   poll...  after every batch of on... calls, until they give an empty handle
///
/// This class finds the flow of a packet, updates the flow's two TCP directions (direction.h), and
/// passes the packet on to the classes that act: SenderWakeup and ReceiverReplay for proven flows,
/// HandshakeTracker for all others. A flow is proven when both ends have shown that they hear each
/// other.
class AckShim {
 public:
  enum class Verdict : uint8_t { kPass, kDrop };
  /// Independent seeds, because hosts can measure the waits and so learn about that one. Must be
  /// unpredictable outside of tests.
  struct Seeds {
    uint64_t flows;  ///< keys the hash of flows
    uint64_t waits;  ///< draws the random part of T-RACKs' waits
  };

  /// `pool` provides the packets that the shim makes. `tunnel` tells whether the tunnel still
  /// carries a flow's data; nullptr means that it never does for long. Both must outlive the shim.
  AckShim(const AckShimOptions& options, PacketPool& pool, const FlowActivityQuery* tunnel,
          const Seeds& seeds);
  AckShim(const AckShim&) = delete;
  AckShim& operator=(const AckShim&) = delete;

  /// Applies everything except the sizes.
  void setOptions(const AckShimOptions& options);

  /// A local host sent a packet that is about to enter the tunnel, before anything in it is
  /// changed. `parsed` must be parseInnerPacket(packet).
  void onFromHost(ByteView packet, const InnerPacket& parsed, Time now);
  /// A packet from the peer is about to be sent to a local host; `packet` is what the host will
  /// receive. kDrop: the host must not receive it.
  [[nodiscard]] Verdict onToHost(ByteView packet, const InnerPacket& parsed, Time now);
  /// The tunnel dropped a local host's packet and will not deliver it (AQM, byte bound, expiry).
  void onTunnelDropped(ByteView packet, const InnerPacket& parsed, Time now);
  void onTimer(Time now);
  Time nextDeadline() const { return std::min(flows_.nextDeadline(), openings_.nextDeadline()); }

  /// The next packet for a local host: an ACK for a sender, or a segment for a receiver.
  Packet pollToHost() { return outbox_.pollToHost(); }
  /// The next segment of a local host that is to be sent into the tunnel again.
  Packet pollToPeer() { return outbox_.pollToPeer(); }

  const ShimCounters& counters() const { return counters_; }
  /// The number of proven flows.
  size_t flows() const { return flows_.table().size(); }
  size_t cachedPackets() const { return flows_.cache().size(); }
  /// Finds a proven flow, for status and tests. `key` is that of the local host's packets. nullptr
  /// when it is not known.
  const ShimFlow* find(const FlowKey& key);

 private:
  Verdict onPacket(ByteView packet, const InnerPacket& parsed, bool fromHost, Time now);
  HashedKey hashedKeyOf(const InnerPacket& parsed, bool fromHost) const;
  Verdict onSegment(const HashedKey& hashed, ByteView packet, const InnerPacket& parsed,
                    bool fromHost);
  Verdict onProven(uint32_t i, ByteView packet, const TcpSegment& s, bool fromHost);
  void onReset(uint32_t i, const TcpSegment& s, bool fromHost);

  AckShimOptions options_;
  ShimCounters counters_;
  ShimOutbox outbox_;
  TrackedFlows flows_;
  SenderWakeup sender_;
  ReceiverReplay receiver_;
  HandshakeTracker openings_;
};

}  // namespace braid
